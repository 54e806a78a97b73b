"""Plots of all kernels: time of a step, and its share of the roof that binds, against the size of the problem."""

import io
from statistics import median

from . import even_pairs, icl_bigram, letter, slr

MODELS = {  # colour of Okabe and Ito, which stay apart with any colour vision, and marker
    "letter": (letter.TITLE, "#0072B2", "o"),
    "even_pairs": (even_pairs.TITLE, "#D55E00", "^"),
    "icl_bigram": (icl_bigram.TITLE, "#000000", "s"),
    "slr": (slr.TITLE, "#56B4E9", "D"),
}
SIZE = (6.75, 3.6)  # inches


def draw(results):
    """{name: PNG} of both plots; nothing if no kernel was measured."""
    rows = {name: results[name]["scaling"] for name in MODELS if name in results}
    if not rows:
        return {}
    return {"time": _png(lambda ax: time(ax, rows)), "share": _png(lambda ax: share(ax, rows))}


def time(ax, rows):
    """Microseconds of a step of every model, and of the multiply-adds alone."""
    points(ax, rows, lambda row: row["microseconds"])
    ends = [end(row["multiply_adds"] for sizes in rows.values() for row in sizes) for end in (min, max)]
    roofs = [row["multiply_adds_per_second"] for name, sizes in rows.items() if name != "even_pairs" for row in sizes]
    if roofs:
        times = [1e6 * end / median(roofs) for end in ends]
        ax.plot(ends, times, "--", color="0.5", linewidth=1, label="arithmetic roof")
    ax.set(yscale="log", ylabel="time of a step, µs")


def share(ax, rows):
    """Percent of the roof that binds."""
    points(ax, rows, lambda row: 100 * binding(row))
    ax.set(ylim=(0, 105), ylabel="share of the roof that binds, %")


def binding(row):
    """The share of the roof that is nearest."""
    return max(row["arithmetic_share"], row.get("memory_share", 0.0))


def points(ax, rows, value):
    for name, sizes in rows.items():
        label, colour, marker = MODELS[name]
        ax.plot([row["multiply_adds"] for row in sizes], [value(row) for row in sizes], marker, color=colour,
                markersize=5, markerfacecolor="none", markeredgewidth=1.3, label=label, clip_on=False)  # fmt: skip
    ax.set(xscale="log", xlabel="multiply-adds of a step")
    ax.grid(color="0.9", linewidth=0.6)


def _png(fill):
    import matplotlib

    from sim.figures import RC

    with matplotlib.rc_context({**RC, "savefig.dpi": 200}):
        from matplotlib.figure import Figure

        figure = Figure(figsize=SIZE)
        ax = figure.subplots()
        fill(ax)
        figure.legend(*ax.get_legend_handles_labels(), loc="outside upper center", ncols=5, frameon=False)
        file = io.BytesIO()
        figure.savefig(file, format="png", metadata={"Software": None})
    return file.getvalue()
