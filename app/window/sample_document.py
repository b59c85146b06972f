"""The sample document of the first start: where it lies, and three questions that it answers. Pure.

`packaging/sample/make.py` wrote it.
"""

from __future__ import annotations

from pathlib import Path

SAMPLE_NAME = "Lantern Hut, a sample.pdf"
QUESTIONS = (
    "When does the last bus leave on weekdays?",
    "How long must the water be boiled?",
    "What has to be done before leaving the hut?",
)


def sample_path() -> Path:
    """Return where the sample lies in the installed program."""
    return Path(__file__).with_name("sample_document.pdf")
