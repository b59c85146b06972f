"""`AdapterShelf`: the LoRA adapters that requests of one loaded model have asked for, read once each.

An adapter whose files have changed since is read again. The last few stay; one that was put away lives on in the
requests that wear it. Used on the tokenizing thread only.
"""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path

from inglenook.engine.adapter_file import CONFIG_NAME, WEIGHTS_NAME, open_adapter
from inglenook.engine.errors import InvalidRequestError, UnsupportedModelError
from inglenook.engine.models.lora import LoraAdapter
from inglenook.engine.models.spec import ModelSpec

_KEPT = 4

_Stamp = tuple[tuple[int, int, int], ...]


class AdapterShelf:
    """Adapters of a model by their paths; `backend` is the name of the back end that runs it."""

    def __init__(self, spec: ModelSpec, backend: str) -> None:
        self._spec = spec
        self._backend = backend
        self._kept: OrderedDict[Path, tuple[_Stamp, LoraAdapter]] = OrderedDict()

    def get(self, path: str) -> LoraAdapter:
        """The adapter at an absolute path.

        Raises:
            UnsupportedModelError: the back end runs none, or as `open_adapter` says.
            InvalidRequestError, ModelNotFoundError, ModelFileError: as their docstrings say.
        """
        if self._backend not in ("torch-cpu", "reference"):
            raise UnsupportedModelError(
                f"The back end {self._backend} runs no adapters. Load the model with the back end torch-cpu for this."
            )
        place = Path(path)
        if not place.is_absolute():
            raise InvalidRequestError(f"adapter must be an absolute path, got {path!r}.")
        stamp = _stamp(place)
        kept = self._kept.get(place)
        if kept is None or kept[0] != stamp:
            kept = (stamp, open_adapter(place, self._spec))
        self._kept[place] = kept
        self._kept.move_to_end(place)
        while len(self._kept) > _KEPT:
            self._kept.popitem(last=False)
        return kept[1]


def _stamp(path: Path) -> _Stamp:
    """What changes when an adapter's files do."""
    folder = path.parent if path.name in (CONFIG_NAME, WEIGHTS_NAME) else path
    files = [folder / name for name in (CONFIG_NAME, WEIGHTS_NAME)]
    found = [file.stat() for file in files if file.exists()]
    return tuple((status.st_ino, status.st_size, status.st_mtime_ns) for status in found)
