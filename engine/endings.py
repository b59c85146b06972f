"""How commands end that do not end by themselves: failed, cancelled, or cancelled before they began."""

from __future__ import annotations

import logging

from inglenook.engine.errors import EngineError, InternalEngineError
from inglenook.engine.homes.messages import Emit
from inglenook.engine.request import Failed, Finished

logger = logging.getLogger(__name__)


def fail(emit: Emit, command_id: int, error: BaseException) -> None:
    """Answer a command with `Failed`.

    Our own errors keep their sentence. Of any other only the class is told, since its text may quote a prompt.
    """
    if not isinstance(error, EngineError):
        logger.error("unexpected %s in the engine", type(error).__name__)
        if isinstance(error, MemoryError):
            error = EngineError(
                "The computer ran out of memory during this. Close other programs or use a smaller model."
            )
        else:
            error = InternalEngineError(
                f"Something unexpected went wrong inside the engine ({type(error).__name__}). Please report it."
            )
    emit(command_id, Failed(type(error).__name__, str(error)))


def cancelled(what: str) -> Failed:
    """The end of a load or an embedding job that was cancelled."""
    return Failed("EngineError", f"{what} was cancelled.")


def finished_before_start() -> Finished:
    """The end of a request that was cancelled before its first step."""
    return Finished(
        finish_reason="cancelled",
        prompt_tokens=0,
        cached_tokens=0,
        completion_tokens=0,
        ttft_s=None,
        tpot_s=None,
        seed=0,
    )
