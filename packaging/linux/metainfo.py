"""Fill in the AppStream metadata: version, date, and pictures where they lie on the web.

    metainfo.py TEMPLATE VERSION SOURCE_DATE_EPOCH [SCREENSHOTS_URL]

Writes to standard output. A software catalogue takes pictures from https only, so without an address there are none in
the metadata, rather than an address that nothing answers at; the package brings them as files in any case.
"""

from __future__ import annotations

import datetime
import sys
from pathlib import Path
from xml.sax.saxutils import escape

# File in packaging/screenshots, and what it shows; the first is the one that a catalogue opens with.
SCREENSHOTS = {
    "cited-answer-light-100.png": "A question about a dropped PDF, the answer, and the page it came from",
    "streaming-light-100.png": "An answer while it is written",
    "documents-light-100.png": "Your documents, ready to be asked",
    "models-light-100.png": "Models that are here, and models that fit this computer",
    "first-run-light-100.png": "The first start",
}


def metainfo(template: str, *, version: str, epoch: int, screenshots_url: str = "") -> str:
    """The template with its places filled in."""
    made = datetime.datetime.fromtimestamp(epoch, datetime.UTC).strftime("%Y-%m-%d")
    return (
        template.replace("@VERSION@", version)
        .replace("@DATE@", made)
        .replace("@SCREENSHOTS@\n", _screenshots(screenshots_url.rstrip("/")) if screenshots_url else "")
    )


def _screenshots(url: str) -> str:
    lines = ["  <screenshots>"]
    for number, (name, caption) in enumerate(SCREENSHOTS.items()):
        lines += [
            '    <screenshot type="default">' if number == 0 else "    <screenshot>",
            f"      <caption>{escape(caption)}</caption>",
            f'      <image type="source">{escape(f"{url}/{name}")}</image>',
            "    </screenshot>",
        ]
    return "\n".join([*lines, "  </screenshots>", ""])


if __name__ == "__main__":
    path, made_version, made_epoch, *address = sys.argv[1:]
    sys.stdout.write(
        metainfo(
            Path(path).read_text(encoding="utf-8"),
            version=made_version,
            epoch=int(made_epoch),
            screenshots_url=address[0] if address else "",
        )
    )
