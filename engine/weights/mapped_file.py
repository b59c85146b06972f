"""`MappedFile`: a regular file mapped read-only, and a plain word for files that are not models at all.

Readers take their numbers from `data` only after checking them against `size`; nothing is read from disk until
then. Tensors handed out are views of the map, which therefore stands until the last of them is gone.
"""

from __future__ import annotations

import mmap
import os
import stat
from pathlib import Path
from types import TracebackType

import numpy as np
import numpy.typing as npt

from inglenook.engine.errors import ModelFileError, ModelNotFoundError, UnsupportedModelError

# endings of files that hold Python objects
RISKY_SUFFIXES = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle", ".joblib", ".npy", ".npz")

_HEAD_BYTES = 4096
_OLD_GGML = (b"lmgg", b"tjgg", b"fmgg", b"algg", b"ggml")


class MappedFile:
    """A file mapped into memory, read-only.

    Raises:
        ModelNotFoundError: there is no such file.
        ModelFileError: it is no regular file, is empty, or may not be read.
    """

    def __init__(self, path: Path) -> None:
        self.name = path.name
        try:
            # a FIFO or device must not be waited for
            descriptor = os.open(
                path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
            )
        except FileNotFoundError as error:
            raise ModelNotFoundError(f"There is no file {path}.") from error
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise ModelFileError(f"{self.name} cannot be opened: {reason}.") from error
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise ModelFileError(f"{self.name} is not an ordinary file.")
            self.size = status.st_size
            if self.size == 0:
                raise ModelFileError(f"{self.name} is empty (0 bytes).")
            self.map = mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ)
        except OSError as error:
            raise ModelFileError(f"{self.name} cannot be read: {error.strerror}.") from error
        finally:
            os.close(descriptor)

    def bytes_at(self, start: int, size: int) -> npt.NDArray[np.uint8]:
        """A read-only view of `size` bytes from `start`, which the caller has checked against `self.size`."""
        return np.frombuffer(self.map, dtype=np.uint8, count=size, offset=start)

    def close(self) -> None:
        """Unmap the file, or leave that to the last tensor still held."""
        try:
            self.map.close()
        except BufferError:
            return

    def __enter__(self) -> MappedFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def size_words(size: int) -> str:
    """A size for people: "98.4 MB"."""
    for unit, scale in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("KB", 10**3)):
        if size >= scale:
            return f"{size / scale:,.1f} {unit}"
    return f"{size} bytes"


def wrong_file(file: MappedFile, wanted: str) -> ModelFileError:
    """The error for a file that does not begin as a `wanted` file does: says in plain words what it looks like."""
    head = file.map[:_HEAD_BYTES]
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if not any(head):
        return ModelFileError(
            f"{file.name} begins with {size_words(len(head))} of zeros: an interrupted copy or download. Fetch it again."
        )
    if head[:2] == b"\x80\x02" or (head[:1] == b"\x80" and head[1:2] in b"\x03\x04\x05" and len(head) > 1):
        return _runs_code(file, "a Python pickle")
    if head[:4] == b"PK\x03\x04":
        if b"data.pkl" in head or b".npy" in head:
            return _runs_code(file, "a PyTorch or NumPy archive with pickles inside")
        return ModelFileError(f"{file.name} is a zip archive, not a model. Unpack it first.")
    if head[:6] == b"\x93NUMPY":
        return _runs_code(file, "a NumPy file")
    if head[:4] == b"\x89HDF":
        return _runs_code(file, "a Keras/HDF5 file")
    if head[:2] == b"\x1f\x8b":
        return ModelFileError(f"{file.name} is a gzip archive, not a model. Unpack it first.")
    if head[:4] == b"GGUF":
        return ModelFileError(
            f"{file.name} is a GGUF file, not {wanted}. Open it under a name ending in .gguf."
        )
    if head[:4] in _OLD_GGML:
        return UnsupportedModelError(
            f"{file.name} is a GGML file from before GGUF, which is not supported. Use a GGUF version of this model."
        )
    length = int.from_bytes(head[:8], "little")
    if head[8:9] == b"{" and length <= file.size - 8:
        return ModelFileError(
            f"{file.name} is a safetensors file, not {wanted}. Open the folder that holds it with its config.json."
        )
    if text.startswith((b"<!doctype", b"<html", b"<?xml", b"<head")):
        return ModelFileError(
            f"{file.name} is a web page, not {wanted}: the download brought an error or login page instead."
        )
    if head.startswith(b"version https://git-lfs"):
        return ModelFileError(f"{file.name} is a Git LFS pointer, not the model itself. Fetch the real file.")
    if Path(file.name).suffix.lower() in RISKY_SUFFIXES:
        return _runs_code(file, f"a {Path(file.name).suffix} file")
    if all(byte >= 32 or byte in b"\t\r\n\f" for byte in head):
        return ModelFileError(f"{file.name} is a text file, not {wanted}.")
    return ModelFileError(f"{file.name} is not {wanted}: it begins with the bytes {head[:4].hex(' ')}.")


def _runs_code(file: MappedFile, what: str) -> UnsupportedModelError:
    return UnsupportedModelError(
        f"{file.name} is {what}, which is unsupported: this format can run code when it is opened. "
        "Use a GGUF or safetensors version of this model."
    )
