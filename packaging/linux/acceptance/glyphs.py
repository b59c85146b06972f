"""Whether the fonts of this system have a glyph for every letter of `scripts.txt`; for the tests.

    glyphs.py

Run with the installed Python. Ends with 1 and the letters that would show as boxes.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from PySide6.QtGui import QFont, QGuiApplication, QTextLayout

os.environ["QT_QPA_PLATFORM"] = "offscreen"
application = QGuiApplication(sys.argv[:1])
missing = set()
for family in (QGuiApplication.font().family(), "monospace"):
    for letter in sorted(set(Path(__file__).with_name("scripts.txt").read_text(encoding="utf-8"))):
        if letter.isspace():
            continue
        layout = QTextLayout(letter, QFont(family))
        layout.beginLayout()
        layout.createLine()
        layout.endLayout()
        glyphs = [glyph for run in layout.glyphRuns() for glyph in run.glyphIndexes()]
        if not glyphs or 0 in glyphs:
            missing.add(letter)
if missing:
    print("no glyph for: " + " ".join(sorted(missing)))
sys.exit(1 if missing else 0)
