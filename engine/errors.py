"""Errors of the engine. Each message is a sentence for a person: what happened, the numbers, what to do.

EngineError
├── ModelFileError          a model file is damaged, incomplete or not what it says
│   └── UnsupportedModelError   a sound file whose architecture, type or tokenizer we refuse by name
├── ModelNotFoundError      no such model in the library, or no such path
├── LibraryError            the model library could not do what was asked
│   └── FetchError          a download failed or was cancelled; nothing was kept
├── NotEnoughMemoryError    said before loading, with the two numbers
├── InvalidRequestError     a parameter out of range: name, value, range
│   └── ContextLengthError  prompt, new tokens and limit: three numbers
├── TemplateError           the chat template is unusable, or over its budget
├── NotLoadedError          the slot holds no model
├── CardLostError           a card that shares a model is gone; the model must be loaded again
├── EngineStoppedError      the engine process ended; open requests failed with the reason
└── InternalEngineError     our own fault, with the exception's name
"""

from __future__ import annotations


class EngineError(Exception):
    """Base of all errors that the engine reports to its callers."""


class ModelFileError(EngineError):
    """A model file is damaged, truncated or inconsistent; the message names the key and the two numbers."""


class UnsupportedModelError(ModelFileError):
    """The file may be sound, but holds something this engine does not run; the message names it."""


class ModelNotFoundError(EngineError):
    """There is no model of that name in the library and no file at that path."""


class LibraryError(EngineError):
    """The model library could not do what was asked; nothing in it was changed."""


class FetchError(LibraryError):
    """A download failed or was cancelled; nothing of it was kept under the model's name."""


class NotEnoughMemoryError(EngineError):
    """The model does not fit in memory; the message has the need and what is free."""


class InvalidRequestError(EngineError):
    """A request's parameter is out of range; the message has its name, value and range."""


class ContextLengthError(InvalidRequestError):
    """Prompt and new tokens exceed the context; the message has the three numbers."""


# How the sentence of a template that cannot be used ends.
TEMPLATE_ADVICE = "Give it another chat template on the models page, or use another model."


class TemplateError(EngineError):
    """The chat template is missing, broken, or went over its time or memory budget."""


class NotLoadedError(EngineError):
    """The named slot holds no model."""


class CardLostError(EngineError):
    """A card that shares a model with others is gone, or does not answer; the message says which and why."""


class EngineStoppedError(EngineError):
    """The engine process ended before the answer was complete."""


class InternalEngineError(EngineError):
    """A fault of our own inside the engine."""


_KINDS: dict[str, type[EngineError]] = {
    cls.__name__: cls
    for cls in (
        EngineError,
        ModelFileError,
        UnsupportedModelError,
        ModelNotFoundError,
        LibraryError,
        FetchError,
        NotEnoughMemoryError,
        InvalidRequestError,
        ContextLengthError,
        TemplateError,
        NotLoadedError,
        CardLostError,
        EngineStoppedError,
        InternalEngineError,
    )
}


def error_from_kind(kind: str, message: str) -> EngineError:
    """Make the error of class name `kind` again on this side of the process boundary."""
    return _KINDS.get(kind, InternalEngineError)(message)
