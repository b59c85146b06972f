"""Words for the colours of code: Pygments splits it, a handful of words of ours name what each piece is.

Only languages on the list are split, and only in pieces of a few thousand characters with lines of sane length, so
that text which a model made up cannot keep a lexer busy. Everything else is plain code.
"""

from __future__ import annotations

from functools import cache

from pygments.lexer import Lexer  # type: ignore[import-untyped]
from pygments.lexers import get_lexer_by_name  # type: ignore[import-untyped]
from pygments.token import (  # type: ignore[import-untyped]
    Comment,
    Generic,
    Keyword,
    Literal,
    Name,
    Number,
    Operator,
    String,
    _TokenType,
)

from inglenook.app.text.rich_text import Span

LONGEST_LINE = 1_000
LANGUAGES = frozenset(
    [
        "bash",
        "batch",
        "c",
        "c++",
        "cpp",
        "cmake",
        "console",
        "cs",
        "csharp",
        "css",
        "csv",
        "dart",
        "diff",
        "docker",
        "dockerfile",
        "elixir",
        "erlang",
        "fortran",
        "go",
        "golang",
        "graphql",
        "haskell",
        "html",
        "http",
        "ini",
        "java",
        "javascript",
        "js",
        "json",
        "jsx",
        "julia",
        "kotlin",
        "latex",
        "lisp",
        "lua",
        "make",
        "makefile",
        "matlab",
        "nginx",
        "objective-c",
        "ocaml",
        "perl",
        "php",
        "powershell",
        "ps1",
        "py",
        "python",
        "python3",
        "pycon",
        "r",
        "rb",
        "rs",
        "ruby",
        "rust",
        "scala",
        "scheme",
        "scss",
        "sh",
        "shell",
        "sql",
        "swift",
        "tex",
        "toml",
        "ts",
        "tsx",
        "typescript",
        "vim",
        "xml",
        "yaml",
        "yml",
        "zig",
        "zsh",
    ]
)

# The first ancestor found here names a token.
_WORDS = {
    Comment: "comment",
    Keyword: "keyword",
    Operator.Word: "keyword",
    Name.Function: "function",
    Name.Class: "function",
    Name.Decorator: "function",
    Name.Builtin: "builtin",
    Name.Tag: "keyword",
    Name.Attribute: "builtin",
    String: "string",
    Number: "number",
    Literal: "number",
    Generic.Inserted: "string",
    Generic.Deleted: "keyword",
    Generic.Heading: "function",
    Generic.Subheading: "function",
    Generic.Prompt: "comment",
}


def highlight(code: str, language: str) -> list[tuple[Span, ...]]:
    """Return the spans of each line of `code`, whose text together is exactly `code`."""
    lines = code.split("\n")
    if language not in LANGUAGES or max(map(len, lines)) > LONGEST_LINE:
        return [(Span(line, code=True),) if line else () for line in lines]
    done: list[list[Span]] = [[]]
    for kind, text in _lexer(language).get_tokens(code):
        word = _word(kind)
        for number, piece in enumerate(text.split("\n")):
            if number:
                done.append([])
            if piece and done[-1] and done[-1][-1].token == word:
                done[-1][-1] = Span(done[-1][-1].text + piece, code=True, token=word)
            elif piece:
                done[-1].append(Span(piece, code=True, token=word))
    return [tuple(line) for line in done]


def prepare() -> None:
    """Load the lexers met most, which takes a moment each; any thread may call this when there is time."""
    for language in ("python", "bash", "json", "javascript"):
        highlight("x = 1", language)


@cache
def _lexer(language: str) -> Lexer:
    return get_lexer_by_name(language, stripnl=False, ensurenl=False)


@cache
def _word(kind: _TokenType) -> str:
    while kind and kind not in _WORDS:
        kind = kind.parent
    return _WORDS.get(kind, "")
