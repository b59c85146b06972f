"""Errors of storage. Each message is a sentence for a person: what happened, the numbers, what to do.

StorageError
├── DatabaseFileError        the file cannot be used; it is left exactly as it was found
│   ├── DamagedDatabaseError    not a database, empty, a folder, or pages that do not fit together
│   ├── NewerDatabaseError      written by a newer program: `found` and `supported`
│   └── ForeignDatabaseError    a sound database of another program
├── DatabaseBusyError        another program holds the file, longer than we wait
├── ReadOnlyError            a change was asked of a file or medium that cannot be written
├── DiskFullError            no room; nothing of the change was kept, all that was there before is intact
├── DiskError                the disk refused to read or write
├── BackupError              a backup could not be made, did not verify, or cannot be restored
├── StoppedError             the user stopped a long change; nothing of it was kept
├── NotFoundError            no row of that id
├── InvalidValueError        a value that the schema cannot hold: name, value, what is allowed
└── DatabaseClosedError      used after `close()`
"""

from __future__ import annotations


class StorageError(Exception):
    """Base of all errors that storage reports to its callers."""


class DatabaseFileError(StorageError):
    """The file cannot be used as our database; it is left exactly as it was found."""


class DamagedDatabaseError(DatabaseFileError):
    """The file is not a database any more, or its pages do not fit together."""


class NewerDatabaseError(DatabaseFileError):
    """The file was written by a newer program; `found` and `supported` are the two schema versions."""

    def __init__(self, found: int, supported: int) -> None:
        super().__init__(
            f"The history was written by a newer Inglenook (schema {found}; this program knows up to {supported}). "
            "Nothing was changed. Start the newer program, or choose another profile."
        )
        self.found = found
        self.supported = supported


class ForeignDatabaseError(DatabaseFileError):
    """The file is a sound database of another program."""


class DatabaseBusyError(StorageError):
    """Another program or connection holds the file, longer than we wait."""


class ReadOnlyError(StorageError):
    """A change was asked of a file or medium that cannot be written."""


class DiskFullError(StorageError):
    """There is no room; nothing of the change was kept and all that was there before is intact."""


class DiskError(StorageError):
    """The disk refused to read or write."""


class BackupError(StorageError):
    """A backup could not be made, did not verify, or cannot be restored; nothing half is left behind."""


class StoppedError(StorageError):
    """The user stopped a backup or a restoring; everything is as it was before."""


class NotFoundError(StorageError):
    """There is no row of that id."""


class InvalidValueError(StorageError):
    """A value that the schema cannot hold; the message has its name, the value and what is allowed."""


class DatabaseClosedError(StorageError):
    """The database was used after `close()`."""
