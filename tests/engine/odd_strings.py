"""Strings that tokenizers disagree about: scripts, digits, spaces, joined characters, look-alikes of control tokens."""

from __future__ import annotations

import random

_LOOK_ALIKES = ["<|im_start|>", "<|im_end|>", "<|endoftext|>", "<tool_call>", "</tool_call>", "<filename>"]
_SCRIPTS = [
    (0x20, 0x7E), (0xA0, 0xFF), (0x100, 0x17F), (0x300, 0x36F), (0x370, 0x3FF), (0x400, 0x4FF), (0x530, 0x58F),
    (0x590, 0x5FF), (0x600, 0x6FF), (0x900, 0x97F), (0x980, 0x9FF), (0xB80, 0xBFF), (0xE00, 0xE7F), (0x10A0, 0x10FF),
    (0x1100, 0x11FF), (0x1200, 0x137F), (0x1780, 0x17FF), (0x1E00, 0x1EFF), (0x2000, 0x206F), (0x20A0, 0x20BF),
    (0x2190, 0x21FF), (0x2200, 0x22FF), (0x2460, 0x24FF), (0x3000, 0x303F), (0x3040, 0x30FF), (0x4E00, 0x9FFF),
    (0xAC00, 0xD7A3), (0xE000, 0xE0FF), (0xFE00, 0xFE0F), (0xFF00, 0xFFEF), (0x10000, 0x1007F), (0x1D400, 0x1D7FF),
    (0x1F300, 0x1F6FF), (0x1F900, 0x1F9FF), (0x20000, 0x2A6DF),
]  # fmt: skip
_WORDS = [
    "the", "Hello", " world", "don't", "I'LL", "we've", "it's", "naïve", "STRASSE", "don\u2019t", "camelCase", "snake_case",
    "def f(x):\n    return x ** 2\n", "for (int i = 0; i < n; ++i) {\n\t\ta[i] += 0x1F;\n}\n", "<div class='a'>&nbsp;</div>",
    "SELECT * FROM t WHERE a >= 3.5e-10;", "https://example.org/a?b=c&d=%20#e", "C:\\\\dir\\\\file.txt", "$x^2$", "```py\n",
    " 12", "1234567", "3.14", "٣٤٥", "१२३", "Ⅷ", "½", "²", " \n", "\n\n\n", "\r\n", "\t\t", "    ", " " * 17, "\u3000", "\xa0",
    "\u2028", "\x00", "\x1f", "\ufeff", "e\u0301", "가", "क्षि", "👩‍👩‍👧‍👦", "🇩🇪", "👍🏽", "❤️", "…", "—", "!!!???", "' s", "'", "''",
]  # fmt: skip


def odd_strings(count: int) -> list[str]:
    """The same strings every time."""
    source = random.Random(20_24)

    def part() -> str:
        choice = source.random()
        if choice < 0.45:
            return source.choice(_WORDS)
        if choice < 0.55:
            return source.choice(_LOOK_ALIKES)
        low, high = source.choice(_SCRIPTS)
        return "".join(chr(source.randint(low, high)) for _ in range(source.randint(1, 8)))

    return ["".join(part() for _ in range(source.randint(1, 14))) for _ in range(count)]
