"""The appendix names every claim, its status and the lines of its proof, and links the claims it builds on."""

import re

import pytest

import proofs_check
from proofs_check.appendix import _ID, _escaped, latex, markdown


@pytest.fixture(scope="module")
def report():
    return proofs_check.prove("phase[12].[uow]*")


def test_markdown_numbers_claims_and_links_their_sources(report):
    text = markdown(report)
    headings = re.findall(r"## Claim (\d+): `(\S+)` \((\w+)\)", text)
    assert [(int(n), id) for n, id, _ in headings] == list(enumerate([r.id for r in report.claims], 1))
    assert {status for *_, status in headings} == {"proved"}
    assert "[Claim 1](#phase1.update)" in text
    for target in re.findall(r"\]\(#([^)]*)\)", text):
        assert f'<a id="{target}"></a>' in text


def test_every_proved_step_is_a_line_of_the_appendix(report):
    text = markdown(report)
    for result in report.claims:
        for evidence in result.evidence:
            if evidence.kind == "proved":
                assert all(f"- {step.text.replace('*', chr(92) + '*')}\n" in text for step in evidence.steps)


def test_latex_is_balanced_escaped_and_references_only_what_it_labels(report):
    text = latex(report)
    for begin, end in ((r"\begin{claim}", r"\end{claim}"), (r"\begin{enumerate}", r"\end{enumerate}"), (r"\(", r"\)")):
        assert text.count(begin) == text.count(end) > 0
    labels = set(re.findall(r"\\label\{([^}]*)\}", text))
    assert labels == {result.id for result in report.claims}
    assert set(re.findall(r"\\ref\{([^}]*)\}", text)) <= labels
    text = re.sub(r"\\begin\{longtable\}.*?\\end\{longtable\}", "", text, flags=re.DOTALL)
    prose = re.sub(r"\\\(.*?\\\)|\\(label|ref)\{[^}]*\}", "", text, flags=re.DOTALL).split("\n", 3)[3]
    assert not re.search(r"(?<!\\)[_&#%$]", prose)


@pytest.mark.parametrize(
    ("text", "typeset"),
    [
        ("beta^h_j and e^(-2g)", r"\(\beta^{h}_{j}\) and \(e^{-2g}\)"),
        ("(f - y)^2, |v|^2", r"(f - y)\(^{2}\), |v|\(^{2}\)"),
        ("e^(alpha_s - (t_o))", r"\(e^{\alpha_{s} - (t_{o})}\)"),
        ("dL/dalpha_j <= rate_o", r"dL/\(d\alpha_{j}\) \(\le\) \(\mathit{rate}_{o}\)"),
        ("sum_h -> 1_-", r"\(\sum_{h}\) \(\to\) \(1_{-}\)"),
        ("rate_o_window of slr.first_steps: 3% & {1..k}", r"rate\_o\_window of slr.first\_steps: 3\% \& \{1..k\}"),
        ("half a~b^", r"half a\textasciitilde{}b\textasciicircum{}"),
    ],
)  # fmt: skip
def test_indices_powers_and_greek_letters_are_typeset(text, typeset):
    assert _escaped(text) == typeset


def test_no_statement_keeps_an_index_as_text():
    for claim in proofs_check.report.load().values():
        assert not re.search(r"\\_|textasciicircum", _escaped(_ID.sub("", claim.statement))), claim.id


def test_a_refuted_claim_says_so(monkeypatch):
    claim = proofs_check.get("phase1.output_gap")
    monkeypatch.setattr(claim, "formula", claim.mutants["sign"])
    text = markdown(proofs_check.prove("phase1.output_gap"))
    assert "(refuted)" in text and "(fails)" in text
