"""Specifications of sweeps: the runs they name, and every fault named with its line."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytic.errors import InputError
from sim.config import resolve
from sim.spec import read_spec
from sim.stored import parameter

from .sweeping import write_spec

BASE = 'task = "occurrence"\nplan = "joint(5x)"\ntrain_words = 9\ntest_words = 9\n'


def labels(spec, *names):
    return [tuple(parameter(config, name) for name in names) for config in spec.groups]


def test_a_grid_is_every_combination_in_order(tmp_path):
    spec = read_spec(write_spec(tmp_path, BASE + "[grid]\nd = [5, 6]\nrate_o = [1.0, 2.0, 3.0]\n"))
    assert labels(spec, "d", "rate_o") == [(5, 1), (5, 2), (5, 3), (6, 1), (6, 2), (6, 3)]
    assert spec.axes == ("d", "rate_o") and len(spec) == 6 * 3


def test_a_zip_takes_first_with_first_and_groups_are_combined(tmp_path):
    one = read_spec(write_spec(tmp_path, BASE + "[zip]\nd = [5, 6]\nrate_o = [1.0, 2.0]\n"))
    assert labels(one, "d", "rate_o") == [(5, 1), (6, 2)]
    text = BASE + "[[zip]]\nd = [5, 6]\nrate_o = [1.0, 2.0]\n[[zip]]\nrate_a = [3.0, 4.0]\ninit_scale = [0.1, 0.2]\n"
    two = read_spec(write_spec(tmp_path, text))
    assert labels(two, "d", "rate_o", "rate_a", "init_scale") == [(5, 1, 3, 0.1), (5, 1, 4, 0.2), (6, 2, 3, 0.1),
                                                                  (6, 2, 4, 0.2)]


def test_a_list_is_one_table_after_the_other_with_axes_of_their_own(tmp_path):
    text = ('train_words = 9\ntest_words = 9\n[[list]]\ntask = "or"\nplan = "O(1x)"\ngrid.targets = [2, 3]\n'
            '[[list]]\ntask = "slr"\nplan = "joint(2x)"\ntokens = 4\nd = 5\nseeds = [7]\n')
    spec = read_spec(write_spec(tmp_path, text))
    assert labels(spec, "task", "plan", "targets", "tokens") == [
        ("or", "O(1x)", 2, None), ("or", "O(1x)", 3, None), ("slr", "AO(2x)", None, 4)]
    assert list(spec.groups.values()) == [[0, 1, 2], [0, 1, 2], [7]]
    assert {"task", "plan", "targets", "tokens", "d"} <= set(spec.axes)


def test_every_run_is_what_resolving_its_settings_gives(tmp_path):
    spec = read_spec(write_spec(tmp_path, BASE + 'length = "fixed:4"\nrate_o = 0.5\ngrid.init = ["zero", "random"]'))
    assert list(spec.groups) == [
        resolve("occurrence", "joint(5x)", train_words=9, test_words=9, length="fixed:4", rate_o=0.5, init=init)
        for init in ("zero", "random")
    ]


def test_a_rate_of_several_phases_is_one_value_of_an_axis(tmp_path):
    text = 'task = "or"\nplan = "O(1x)->A(1x)->O"\n[grid]\nrate_o = [[10, 0.5], [20, 0.5]]\n'
    assert labels(read_spec(write_spec(tmp_path, text)), "rate_o") == [("10, 0.5",), ("20, 0.5",)]


@pytest.mark.parametrize(("seeds", "expected"), [
    ("seeds = 2", {(5, 0), (5, 1), (6, 0), (6, 1)}),
    ('seeds = "4:6"', {(5, 4), (5, 5), (6, 4), (6, 5)}),
    ("seeds = [7]", {(5, 7), (6, 7)}),
    ("grid.seeds = [3, 8]", {(5, 3), (5, 8), (6, 3), (6, 8)}),
    ('grid.seeds = "3:5"', {(5, 3), (5, 4), (6, 3), (6, 4)}),
])
def test_seeds_as_a_parameter_or_an_axis(tmp_path, seeds, expected):
    spec = read_spec(write_spec(tmp_path, BASE + seeds + "\ngrid.d = [5, 6]\n"))
    assert {(parameter(config, "d"), seed) for config, seed in spec.pairs()} == expected


def test_seeds_may_be_zipped(tmp_path):
    spec = read_spec(write_spec(tmp_path, BASE + "[zip]\nd = [5, 6]\nseeds = [3, 8]\n"))
    assert [(parameter(config, "d"), seed) for config, seed in spec.pairs()] == [(5, 3), (6, 8)]


def test_spaces_have_both_ends_and_twelve_digits(tmp_path):
    text = BASE + "[grid]\nd = {linspace = [10, 50, 5]}\nrate_a = {geomspace = [0.01, 1, 3]}\n"
    spec = read_spec(write_spec(tmp_path, text + "rate_o = {linspace = [0, 1, 4]}\n"))
    columns = list(zip(*labels(spec, "d", "rate_a", "rate_o"), strict=True))
    assert [sorted(set(column)) for column in columns] == [
        [10, 20, 30, 40, 50], [0.01, 0.1, 1], [0, 0.333333333333, 0.666666666667, 1]]


@pytest.mark.parametrize("count", [1, 2, 3, 5, 40])
def test_shards_share_the_runs_and_each_has_dear_and_cheap_ones(tmp_path, count):
    spec = read_spec(write_spec(tmp_path, BASE + "seeds = 6\ngrid.d = [5, 6, 7, 8, 9]\n"))
    shards = [spec.pairs((i, count)) for i in range(1, count + 1)]
    assert sorted(((c.key, s) for shard in shards for c, s in shard)) == sorted((c.key, s) for c, s in spec.pairs())
    assert max(map(len, shards)) - min(map(len, shards)) <= 1 or count == 40
    if count <= 5:
        assert all(len({config for config, _ in shard}) == 5 for shard in shards)


def test_set_changes_a_parameter_an_axis_or_makes_one(tmp_path):
    path = write_spec(tmp_path, BASE + "[grid]\nd = [5, 6]\nrate_o = [1.0, 2.0]\n")
    assert labels(read_spec(path, ["d=9", "plan=O(3x)", "seeds=0:1"]), "plan", "d", "rate_o") == [
        ("O(3x)", 9, 1), ("O(3x)", 9, 2)]
    assert labels(read_spec(path, ["grid.d=[7]", 'task="or"']), "task", "d", "rate_o") == [("or", 7, 1), ("or", 7, 2)]
    assert read_spec(path, ["grid.rate_a=[1.0, 2.0]"]).axes == ("d", "rate_o", "rate_a")


BAD = [  # text after a comment line; the line that is named; what is said
    ("tsak = 'or'\nplan = 'O'", 2, "'tsak' is not a parameter of a run; did you mean task?"),
    ("task = 'or'\n\nplan = 'O'\n[grid]\n# d\ntrainwords = [5]", 7, "did you mean train_words?"),
    ("task = 'or'", None, "plan is missing"),
    ("plan = 'O'", None, "task is missing"),
    ("task = 'occurence'\nplan = 'O'", 2, "did you mean 'occurrence'?"),
    ("task = 5\nplan = 'O'", 2, "task must be one of"),
    ("task = 'or'\nplan = 'O->'", 3, "the end at character 4"),
    ("task = 'or'\nplan = 'O'\nd = 'ten'", 4, "d must be a whole number"),
    ("task = 'or'\nplan = 'O'\nd = 1", 4, "d must be a whole number at least 2"),
    ("task = 'or'\nplan = 'O'\n[grid]\nd = [10, 'ten']", 5, "d must be a whole number at least 2, not 'ten'"),
    ("task = 'or'\nplan = 'O'\ngrid.d = [10,\n  20,\n  2.5]\n", 4, "d must be a whole number at least 2, not 2.5"),
    ("task = 'or'\nplan = 'O'\n[grid]\nd = []", 5, "d is an empty axis"),
    ("task = 'or'\nplan = 'O'\n[grid]\n", 4, "grid must be a table of one or more axes"),
    ("task = 'or'\nplan = 'O'\ngrid = 5", 4, "grid must be a table of one or more axes"),
    ("task = 'or'\nplan = 'O'\n[grid]\nd = 5", 5, "d must be a list of values"),
    ("task = 'or'\nplan = 'O'\n[grid]\nd = [5, 6, 5]", 5, "d has the value 5 twice"),
    ("task = 'or'\nplan = 'O'\n[grid]\nd = {linspace = [5, 6]}", 5, "linspace = [from, to, number]"),
    ("task = 'or'\nplan = 'O'\n[grid]\nd = {space = [5, 6, 2]}", 5, "linspace = [from, to, number]"),
    ("task = 'or'\nplan = 'O'\n[grid]\nd = {}", 5, "linspace = [from, to, number]"),
    ("task = 'or'\nplan = 'O'\n[grid]\nrate_o = {geomspace = [0, 6, 3]}", 5, "rate_o: geomspace must be a finite"),
    ("task = 'or'\nplan = 'O'\n[grid]\nrate_o = {linspace = [0, 6, 1]}", 5, "rate_o: number of points"),
    ("task = 'or'\nplan = 'O'\n[grid]\nd = {geomspace = [10, 1000, 4]}", 5, "d must be a whole number at least 2, not"),
    ("task = 'or'\nplan = 'O'\nd = 5\n[grid]\nd = [5, 6]", 6, "d is given twice: here and line 4"),
    ("task = 'or'\nplan = 'O'\n[grid]\nd = [5]\n[zip]\nd = [5]", 7, "d is given twice: here and line 5"),
    ("task = 'or'\nplan = 'O'\n[[list]]\nd = 5\n[[list]]\nplan = 'A'", 7, "plan is given twice: here and line 3"),
    ("task = 'or'\nplan = 'O'\n[zip]\nd = [5, 6]\nrate_o = [1.0]", 4, "equally long: d has 2, rate_o has 1"),
    ("task = 'or'\nplan = 'O'\nlist = 5", 4, "list must be one or more tables"),
    ("task = 'or'\nplan = 'O'\nlist = []", 4, "list must be one or more tables"),
    ("task = 'or'\nplan = 'O'\n[[list]]\nd = 5\n[[list]]\nd = 1", 7, "d must be a whole number at least 2, not 1"),
    ("task = 'or'\nplan = 'O'\n[[list]]\nd = 5\n[[list]]\ngrid.d = [4, 3.5]", 7, "not 3.5"),
    ("task = 'or'\nplan = 'O'\nnoise = 0.1", 4, "noise is not a setting of task or"),
    ("task = 'or'\nplan = 'O->A'\nrate_o = [1, 2]", 4, "rate_o needs 1 value(s) for plan O->A"),
    ("task = 'or'\nplan = 'O'\nrate_o = -1", 4, "rate_o must be a finite number"),
    ("task = 'or'\nplan = 'O'\nrate_o = nan", 4, "rate_o must be a finite number"),
    ("task = 'or'\nplan = 'O'\ninit = 'ones'", 4, "init must be one of random, zero"),
    ("task = 'or'\nplan = 'O'\nlength = 'fixd:3'", 4, "did you mean 'fixed'?"),
    ("task = 'or'\nplan = 'O'\nseeds = 0", 4, "seeds 0 names no seed"),
    ("task = 'or'\nplan = 'O'\nseeds = [1, 1]", 4, "the same seed twice"),
    ("task = 'or'\nplan = 'O'\n[grid]\nseeds = 'x'", 5, "seeds must be"),
    ("task = 'or'\nplan = 'O'\n[grid]\nseeds = []", 5, "names no seed"),
    ("task = 'or'\nplan = 'O'\n[zip]\nseeds = ['x']", 5, "seeds must be"),
    ("task = 'or'\nplan = 'O'\nd = 1000000", 4, "GiB"),
    ("task = 'or'\nplan = 'O'\nd = {a = 1}", 4, "d must be a whole number"),
    ("task = 'or'\nplan = 'O'\nd = 1979-05-27", 4, "d must be a whole number"),
    ("task = 'or'\nplan = 'O'\nd = = 1", 4, "line 4"),
    ("task = 'or'\nplan = 'O'\nd = 1\nd = 2", 5, "line 5"),
    ("task = 'or'\nplan = 'O'\nsettings.d = 5", 4, "'settings' is not a parameter"),
    ("task = 'or'\nplan = 'O'\n" + "".join(f"grid.rate_{layer} = {{linspace = [0, 1, 9999]}}\n" for layer in "ao"),
     None, "more than 1000000 combinations"),
    ("task = 'or'\nplan = 'O'\nx = " + "[" * 9999, None, ""),
    ("task = 'or'\nplan = 'O'\nd = " + "1" * 5000, None, ""),
]


@pytest.mark.parametrize(("text", "line", "message"), BAD, ids=lambda value: str(value)[:50])
def test_a_fault_is_named_with_its_line(text, line, message, tmp_path):
    path = write_spec(tmp_path, "# a sweep\n" + text)
    with pytest.raises(InputError) as error:
        read_spec(path)
    said = str(error.value)
    assert message in said and "\n" not in said and "spec.toml" in said
    assert line is None or f"line {line}" in said


@pytest.mark.parametrize(("change", "message"), [
    ("d", "set must be NAME=VALUE"), ("=5", "set must be NAME=VALUE"), ("a.b.c=1", "set must be NAME=VALUE"),
    ("zip.d=[1]", "set must be NAME=VALUE"), ("d=ten", "--set 'd=ten': d must be"),
    ("grid.d=5", "--set 'grid.d=5': d must be a list"), ("dd=5", "--set 'dd=5': 'dd' is not a parameter"),
])
def test_a_bad_change_is_named(tmp_path, change, message):
    with pytest.raises(InputError) as error:
        read_spec(write_spec(tmp_path, BASE), [change])
    assert message in str(error.value)


def test_the_line_of_a_fault_in_a_long_file_is_found_at_once(tmp_path):
    entries = "".join(f"[[list]]\nrate_o = {i}.5\n# rate_o\n" for i in range(3000))
    with pytest.raises(InputError, match=r"line 9006: rate_o must be"):
        read_spec(write_spec(tmp_path, BASE + entries + "[[list]]\nrate_o = -1\n"))


def test_what_is_no_text_or_far_too_long_is_refused(tmp_path):
    path = tmp_path / "spec.toml"
    for data, message in ((b"\xff\xfe", "codec"), (b"#" * (2**20 + 1), "bytes")):
        path.write_bytes(data)
        with pytest.raises(InputError, match=message):
            read_spec(path)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 9) | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["", "or", "joint", "O", "fixed:3", "0:2", "\u2028"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["d", "plan", "grid", "zip", "list", "linspace", "seeds", "rate_o", "x"]), inner, max_size=3),
    max_leaves=6,
)
NAMES = ["d", "rate_o", "rate_a", "init_scale", "init", "seeds", "steps", "heads", "targets", "length", "train_words",
         "record_every", "grid", "zip", "list"]


@given(table=st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=4))
def test_any_other_table_is_read_or_refused_in_one_line(table, tmp_path_factory):
    path = tmp_path_factory.mktemp("spec") / "spec.toml"
    path.write_text('task = "or"\nplan = "O(1x)"\ntest_words = 3\n' + "".join(
        f"{key} = {_toml(value)}\n" for key, value in table.items()))
    try:
        assert len(read_spec(path)) > 0
    except InputError as error:
        assert "\n" not in str(error) and "spec.toml" in str(error)


def _toml(value):
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {_toml(v)}" for key, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return '""' if value is None else json.dumps(value)
