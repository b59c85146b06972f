"""An installed sentence encoder, for tests in which the engine is played."""

from __future__ import annotations

from pathlib import Path

from inglenook.engine.model_library import InstalledModel, ModelRecord


def installed_encoder(folder: Path, name: str = "e") -> InstalledModel:
    """Return an encoder of that name whose files would lie in `folder`."""
    record = ModelRecord(
        title=name,
        kind="embedding",
        licence="",
        origin="",
        size_bytes=0,
        num_parameters=0,
        kv_bytes_per_token=0,
    )
    return InstalledModel(name, record, folder, False)
