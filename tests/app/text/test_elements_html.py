"""A message as HTML or plain text that stands alone."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest

from inglenook.app.text.elements_html import elements_of, html_of, text_of

EVERYTHING = """# Title & more

Some **bold**, *slanted*, ~~gone~~ and `a<b` text with [a link](https://example.org/?a=1&b=2).

- one
- two
  1. first
  2. second

     more of second
- three

> quoted
>
> - inside

| a | b |
|---|--:|
| 1 | <2> |

```python
if a < b:

    print("&")
```

---
The end."""


class Balance(HTMLParser):
    """Keeps what is open, and every tag that was seen."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.faults: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.seen.add(tag)
        if tag not in ("hr", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.faults.append(tag)


@pytest.mark.parametrize(
    "text",
    [
        EVERYTHING,
        "- a\n  > b\n  > - c\n- d",
        "1. a\n   - b\n     1. c\n\n2. d",
        "> > deep\n\nout",
        "- a\n\n```\nx\n```\n\n- b",
        "",
        "- ",
        "* a\n1. b\n* c",
    ],
)
def test_html_is_balanced(text: str) -> None:
    balance = Balance()

    balance.feed(html_of(elements_of(text, is_plain=False)))

    assert (balance.open, balance.faults) == ([], [])


def test_html_says_what_the_markdown_said() -> None:
    shown = html_of(elements_of(EVERYTHING, is_plain=False))

    assert "<h1>Title &amp; more</h1>" in shown
    assert "<strong>bold</strong>" in shown
    assert "<code>a&lt;b</code>" in shown
    assert '<a href="https://example.org/?a=1&amp;b=2" rel="noreferrer">' in shown
    assert '<ul><li><p>one</p></li><li><p>two</p><ol><li value="1">' in shown
    assert (
        '<pre><code>if a &lt; b:\n\n    print("&amp;")</code></pre>'.replace('"&', "&quot;&").replace(
            ';")', ";&quot;)"
        )
        in shown
    )
    assert '<th style="text-align:left">a</th>' in shown
    assert '<td style="text-align:right">&lt;2&gt;</td>' in shown


def test_text_keeps_marks_of_lists_and_parts_cells_by_tabs() -> None:
    shown = text_of(elements_of(EVERYTHING, is_plain=False))

    assert "Some bold, slanted, gone and a<b text with a link" in shown
    assert "• one\n• two\n  1. first\n  2. second" in shown
    assert "a\tb\n1\t<2>" in shown
    assert 'if a < b:\n\n    print("&")' in shown
    assert "> quoted" in shown


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "![x](http://evil/x.png)",
        "<img src=file:///etc/passwd>",
        "[x](javascript:alert(1))",
        "[x](data:text/html,<script>)",
        "<table background=x>",
    ],
)
@pytest.mark.parametrize("is_plain", [True, False])
def test_nothing_that_runs_or_loads_gets_out(text: str, is_plain: bool) -> None:
    balance = Balance()
    shown = html_of(elements_of(text, is_plain=is_plain))

    balance.feed(shown)

    assert not balance.seen & {"script", "img", "iframe", "style", "object", "link"}
    assert 'href="javascript' not in shown
    assert 'href="data' not in shown


def test_the_words_of_a_user_are_literal() -> None:
    elements = elements_of("# a\n**b**", is_plain=True)

    assert html_of(elements) == "<p># a</p><p>**b**</p>"
    assert text_of(elements) == "# a\n**b**"
