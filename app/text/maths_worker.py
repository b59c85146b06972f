"""The process that draws formulas: `python -I -m inglenook.app.text.maths_worker`.

ziamath turns LaTeX into outlines of glyphs from the font that it brings along; nothing is installed, fetched or read
besides. Nested formulas cost it exponentially, so it runs here, limited, and the window kills it when one takes too
long. A line of JSON asks, a line answers: {"id", "latex", "is_display"}, then {"id", "box": [x, y, width, height],
"shapes": [...]} or {"id", "fault"}. The baseline is y = 0, a font of size 100, y grows downwards.
"""

from __future__ import annotations

import json
import re
import sys
from typing import Any
from xml.etree.ElementTree import Element

from inglenook.engine.tokenizer.process_limits import limit_process

MEMORY_BYTES = 768 << 20
MAX_SHAPES_CHARS = 400_000
SIZE = 100.0
_UNKNOWN = re.compile(r"\s*\\[A-Za-z]")


def main() -> None:
    """Answer lines until the input ends."""
    limit_process(MEMORY_BYTES)
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            answer = draw(str(asked["latex"]), is_display=bool(asked["is_display"]))
        except Exception as error:  # noqa: BLE001 - the library raises what it meets, and text is shown instead
            answer = {"fault": type(error).__name__}
        print(json.dumps({"id": asked["id"], **answer}), flush=True)


def draw(latex: str, *, is_display: bool) -> dict[str, Any]:
    """Return the box and the shapes of a formula, or why there are none."""
    from ziamath.config import config
    from ziamath.zmath import Latex

    config.svg2 = False
    formula = Latex(latex, size=SIZE, inline=not is_display, margin=0)
    if any(_UNKNOWN.match(text) for text in formula.mathml.itertext()):
        # A command that the library does not know comes out as its name.
        return {"fault": "UnknownCommand"}
    picture = formula.svgxml()
    box = [float(number) for number in picture.attrib["viewBox"].split()]
    shapes = [shape for element in picture.iter() if (shape := _shape(element)) is not None]
    if not shapes:
        return {"fault": "Empty"}
    if sum(len(str(shape)) for shape in shapes) > MAX_SHAPES_CHARS:
        return {"fault": "TooLarge"}
    return {"box": box, "shapes": shapes}


def _shape(element: Element) -> list[Any] | None:
    """A shape as a list: ["path", d], ["line", d, width], ["rect", x, y, w, h] or ["frame", x, y, w, h, width]."""
    get, is_filled = element.attrib.get, element.attrib.get("fill") != "none"
    stroke = float(get("stroke-width", "0")) if get("stroke") else 0.0
    if element.tag.endswith("path") and get("d"):
        # A stroke without a fill is a line; everything else are outlines of glyphs.
        return ["line", get("d"), stroke] if stroke and get("fill") is None else ["path", get("d")]
    if element.tag.endswith("rect") and get("fill") != "transparent":
        place = [float(get(name, "0")) for name in ("x", "y", "width", "height")]
        if stroke and not is_filled:
            return ["frame", *place, stroke]
        return ["rect", *place]
    return None


if __name__ == "__main__":
    main()
