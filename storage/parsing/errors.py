"""Errors of document parsing. Each message is a sentence about "this file" and one thing to do about it.

ParsingError
├── UnreadableFileError         the file could not be opened at all
│   ├── FileVanishedError           it is no longer where it was
│   ├── FileAccessError             this user may not read it
│   └── NotARegularFileError        a folder, link, pipe, socket or device
├── EmptyFileError              0 bytes
├── DocumentTooLargeError       over a limit: what it has and what is allowed
├── UnsupportedTypeError        sound perhaps, but a type we do not read; the message names it
├── DamagedDocumentError        it says it is of a type, but cannot be read as one
├── PasswordRequiredError       encrypted, and no password was given
│   └── WrongPasswordError          encrypted, and the given password does not open it
├── NoTextError                 read from end to end and holds no text: scanned, or blank
├── DocumentChangedError        no longer the bytes that were indexed
├── ParsingTimeoutError         took too long and was ended
├── ParsingCancelledError       ended because the user asked
└── ParserStoppedError          the parser process died or failed; the next document gets a fresh one

Messages never hold the file's name or text: the caller knows the name, and logs must not.
"""

from __future__ import annotations


class ParsingError(Exception):
    """Base of all errors of reading a document."""


class UnreadableFileError(ParsingError):
    """The file could not be opened or read."""


class FileVanishedError(UnreadableFileError):
    """There is no file at that path any more."""


class FileAccessError(UnreadableFileError):
    """The system does not let this user read the file."""


class NotARegularFileError(UnreadableFileError):
    """The path names a folder, a link, a pipe, a socket or a device."""


class EmptyFileError(ParsingError):
    """The file has 0 bytes."""


class DocumentTooLargeError(ParsingError):
    """The document exceeds a limit of size, pages, text or memory; the message has the numbers."""


class UnsupportedTypeError(ParsingError):
    """The content is of a type that is not read; the message names the type."""


class DamagedDocumentError(ParsingError):
    """The content cannot be read as the type that it says it is."""


class PasswordRequiredError(ParsingError):
    """The document is encrypted and no password was given."""


class WrongPasswordError(PasswordRequiredError):
    """The document is encrypted and the given password does not open it."""


class NoTextError(ParsingError):
    """The document was read and holds no text; the message counts the pages."""


class DocumentChangedError(ParsingError):
    """The file no longer has the bytes that were indexed."""


class ParsingTimeoutError(ParsingError):
    """Parsing took longer than allowed and was ended."""


class ParsingCancelledError(ParsingError):
    """Parsing was ended because the caller asked."""


class ParserStoppedError(ParsingError):
    """The parser process died or failed by a fault of its own."""


_KINDS: dict[str, type[ParsingError]] = {
    cls.__name__: cls
    for cls in (
        ParsingError,
        UnreadableFileError,
        FileVanishedError,
        FileAccessError,
        NotARegularFileError,
        EmptyFileError,
        DocumentTooLargeError,
        UnsupportedTypeError,
        DamagedDocumentError,
        PasswordRequiredError,
        WrongPasswordError,
        NoTextError,
        DocumentChangedError,
        ParsingTimeoutError,
        ParsingCancelledError,
        ParserStoppedError,
    )
}


def error_from_kind(kind: str, message: str) -> ParsingError:
    """Make the error of class name `kind` again on this side of the process boundary."""
    return _KINDS.get(kind, ParserStoppedError)(message)
