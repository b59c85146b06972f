"""The child process that takes a model into the library in fewer bits, so that the window never imports torch.

`python -m inglenook.app.models.quantize_worker` with one JSON object on standard input: folder, source, name, weights,
title, licence. It writes one JSON object a line: how far it is (stage, done, total), and last either `sentence` or
`error`. It ends when its standard output is closed.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from inglenook.engine.errors import EngineError
from inglenook.engine.memory import format_bytes
from inglenook.engine.model_library import ModelLibrary


def main() -> int:
    """Quantise one model; returns the exit status."""
    asked = json.loads(sys.stdin.readline())
    try:
        _tell({"sentence": _quantize(asked)})
    except EngineError as error:
        _tell({"error": str(error)})
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            return 1
        _tell({"error": f"The model could not be taken in: {error.strerror}."})
    return 0


def _quantize(asked: dict[str, Any]) -> str:
    from inglenook.engine.library.model_quantizing import quantize_model
    from inglenook.engine.library.perplexity_text import TEXT
    from inglenook.engine.weights.quantize import Quantization

    def progress(stage: str, done: int, total: int) -> None:
        _tell({"stage": stage, "done": done, "total": total})

    source = Path(asked["source"])
    made = quantize_model(
        ModelLibrary(Path(asked["folder"])),
        source,
        called=source.name,
        name=asked["name"],
        how=Quantization(asked["weights"]),
        text=TEXT,
        title=asked["title"],
        licence=asked["licence"],
        progress=progress,
    )
    size = format_bytes(made.model.record.size_bytes)
    words = (
        f"{made.model.record.title} is in the library: {size} instead of {format_bytes(made.source_bytes)}."
    )
    if made.change is None:
        return f"{words} What that costs was not measured: {made.words}"
    change = made.change
    return (
        f"{words} On a short English text the perplexity went from {change.before:.2f} to {change.after:.2f} "
        f"({change.ratio - 1:+.1%}); lower is better."
    )


def _tell(line: dict[str, Any]) -> None:
    print(json.dumps(line), flush=True)


if __name__ == "__main__":
    sys.exit(main())
