"""LaTeX found in Markdown, and money, code and paths that are none."""

from __future__ import annotations

import time

import pytest

from inglenook.app.text.markdown import render_markdown
from inglenook.app.text.maths_syntax import latex_of
from inglenook.app.text.rich_text import Paragraph, Span


def spans(text: str) -> list[Span]:
    return [span for p in render_markdown(text) if isinstance(p, Paragraph) for span in p.spans]


def formulas(text: str) -> list[str]:
    return [span.text for span in spans(text) if span.maths]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (r"$C \rightarrow S$ and it costs $5 and $10.", [r"$C \rightarrow S$"]),
        (r"the price $\$0.60$ is fair", [r"$\$0.60$"]),
        ("Let $x$ and $y_1$ be.", ["$x$", "$y_1$"]),
        ("So $n + 1$, $2n$, $f(x)$ and $5$.", ["$n + 1$", "$2n$", "$f(x)$", "$5$"]),
        (r"Then \(a^2\) and \[b^2\] here", [r"\(a^2\)", r"\[b^2\]"]),
        ("Text $$E = mc^2$$ more", ["$$E = mc^2$$"]),
        ("$$\na &= b \\\\\n- c &= d\n$$", ["$$\na &= b \\\\\n- c &= d\n$$"]),
        ("Before\n$$\nx\n$$\nafter", ["$$\nx\n$$"]),
        ("\\[\nx\n= y\n\\]", ["\\[\nx\n= y\n\\]"]),
        ("1. first\n\n   $$\n   x + 1\n   $$\n2. next", ["$$\nx + 1\n$$"]),
        ("> $$x^2$$", ["$$x^2$$"]),
        ("| a | b |\n|---|---|\n| $x$ | 2 |", []),
        (r"**bold $a*b*c$ end**", ["$a*b*c$"]),
        (r"$\text{a_b}$ and $a_b$ and $c_d$", [r"$\text{a_b}$", "$a_b$", "$c_d$"]),
    ],
)
def test_maths_is_found(text: str, found: list[str]) -> None:
    assert formulas(text) == found


@pytest.mark.parametrize(
    "text",
    [
        "It costs $5 and $10.",
        "between $5, or 6$ and more",
        "$20k-$30k or $20k/$30k",
        "US$5 and US$6$",
        "A $100 bill and b=$200",
        "$HOME and $PATH or $HOME/$USER",
        "`$x$` and `\\(y\\)`",
        "costs $5 for `a$` here",
        "```\n$x$\n```",
        "    $x^2$",
        "$ x $ and $x $",
        "$\n\nx$",
        "$$ and $$$",
        r"\$x\$ and \\(y)",
        "one $ sign",
        "$5 (five dollars) and 10$ (ten)",
        r"\[not closed",
        "$$\nnot\n\nmaths\n$$",
        "",
    ],
)
def test_money_code_and_paths_are_text(text: str) -> None:
    assert formulas(text) == []


def test_a_table_shows_the_formula_in_its_cell() -> None:
    (table,) = render_markdown("| a | b |\n|---|---|\n| $x^2$ | 2 |")

    assert table.rows[1][0][0].maths == "inline"  # type: ignore[union-attr]


def test_a_formula_alone_is_a_block_of_its_own() -> None:
    kinds = [p.kind for p in render_markdown("$$x$$\n\ntext\n\n\\[y\\]") if isinstance(p, Paragraph)]

    assert kinds == ["maths", "text", "maths"]


def test_the_source_loses_only_its_marks() -> None:
    assert [latex_of(s) for s in ("$x$", "$$ x $$", r"\(x\)", "\\[\nx\n\\]")] == ["x"] * 4


def test_hostile_dollars_take_no_time() -> None:
    began = time.process_time()

    for text in (
        "$a" * 3_000,
        "$$a\n" * 1_500,
        r"\[" * 3_000,
        r"\(a" * 2_000,
        "$" * 6_000,
        "\\" * 6_000 + "$",
    ):
        render_markdown(text)

    assert time.process_time() - began < 2
