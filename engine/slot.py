"""`Slot`: a named place for one model or sentence encoder, its open work, and one step of it at a time.

Used on the engine thread only. Every request in `generations` is answered here: text as it comes, then exactly one
`Finished` or `Failed`.
"""

from __future__ import annotations

import logging
import secrets
import threading
import traceback

import torch

from inglenook.engine.errors import (
    ContextLengthError,
    EngineError,
    InternalEngineError,
    InvalidRequestError,
)
from inglenook.engine.generation import Generation
from inglenook.engine.loaded_encoder import EmbeddingJob, LoadedEncoder
from inglenook.engine.loaded_model import LoadedModel
from inglenook.engine.messages import EmbedTexts, Emit, Submit
from inglenook.engine.request import Embedded, Failed, Finished, FinishReason, Request, SamplingParams
from inglenook.engine.sampler import sample
from inglenook.engine.sequence import Sequence
from inglenook.engine.tokenizer.tokenizer import EncodedPrompt

logger = logging.getLogger(__name__)


class Slot:
    """One model or encoder and its requests. `load_id` is set while a load runs; requests wait in `pending` meanwhile."""

    def __init__(self, name: str, emit: Emit) -> None:
        self.name = name
        self.model: LoadedModel | None = None
        self.encoder: LoadedEncoder | None = None
        self.load_id: int | None = None
        self.load_cancelled = threading.Event()
        self.pending: list[Submit | EmbedTexts] = []
        self.generations: dict[int, Generation] = {}
        self.jobs: dict[int, EmbeddingJob] = {}
        self.num_steps = 0
        self.num_prompt_tokens = 0
        self.num_generation_tokens = 0
        self._emit = emit

    def add(self, request_id: int, request: Request, prompt: EncodedPrompt, submitted: float) -> None:
        """Start a request whose prompt is encoded; `submitted` is its `time.perf_counter()`.

        Raises:
            InvalidRequestError: an empty prompt, or a token id outside the vocabulary.
            ContextLengthError: prompt and reply exceed the context.
        """
        assert self.model is not None
        model, params, token_ids = self.model, request.sampling, prompt.token_ids
        max_tokens = _check_lengths(token_ids, params, model)
        stop_ids = frozenset(params.stop_token_ids)
        if not params.ignore_eos:
            stop_ids |= model.tokenizer.stop_token_ids
        generation = Generation(
            Sequence(request_id, list(token_ids), len(token_ids)),
            params,
            seed=secrets.randbits(63) if params.seed is None else params.seed,
            max_tokens=max_tokens,
            stop_token_ids=stop_ids,
            detokenizer=model.tokenizer.detokenizer(token_ids, is_chat=request.messages is not None),
            submitted=submitted,
            notices=prompt.notices,
        )
        self.num_prompt_tokens += len(token_ids)
        self.generations[request_id] = generation
        model.scheduler.add(generation.sequence)

    def step(self) -> None:
        """Plan and run one step, then hand its tokens out; a step that fails fails all requests of the slot."""
        assert self.model is not None
        model = self.model
        try:
            plan = model.scheduler.plan()
            assert plan.chunks, "requests are open but nothing can be scheduled"
            logits = model.runner.run(plan, model.scheduler.kv.take_copies())
        except Exception as error:  # noqa: BLE001 - whatever it is, the engine goes on
            # Frames only: an exception's own text may quote a prompt.
            frames = "".join(traceback.format_tb(error.__traceback__))
            logger.error("a step failed in slot %s with %s:\n%s", self.name, type(error).__name__, frames)
            failed, self.generations = list(self.generations), {}
            for request_id in failed:
                fail(self._emit, request_id, error)
            model.reset()
            return
        model.scheduler.commit(plan)
        self.num_steps += 1
        for chunk, row in zip((c for c in plan.chunks if c.is_last), logits, strict=True):
            self._take_logits(self.generations[chunk.sequence.id], row)
        if not self.generations:
            model.scheduler.kv.integrity()

    def embed_step(self) -> None:
        """Take the oldest embedding job one step further, and answer it when it is done."""
        request_id, job = next(iter(self.jobs.items()))
        try:
            if not job.is_finished:  # no texts, no step
                job.step()
        except Exception as error:  # noqa: BLE001 - one job fails, the others go on
            del self.jobs[request_id]
            fail(self._emit, request_id, error)
            return
        if job.is_finished:
            del self.jobs[request_id]
            vectors = job.vectors.astype("<f4")
            self._emit(request_id, Embedded(vectors.tobytes(), vectors.shape[1], job.cut))

    def end(self, request_id: int, reason: FinishReason) -> None:
        """End a request now; what was held back of its text is given out first."""
        generation = self.generations[request_id]
        self._drop(request_id)
        rest = generation.flush()
        if rest is not None:
            self._emit(request_id, rest)
        self._emit(request_id, generation.finished(reason))

    def empty(self) -> None:
        """Cancel all requests and close the model or encoder."""
        for request_id in self.jobs:
            self._emit(request_id, cancelled("Embedding"))
        self.jobs, self.encoder = {}, None
        for request_id in list(self.generations):
            self.end(request_id, "cancelled")
        if self.model is not None:
            self.model.close()
            self.model = None

    def stats(self) -> dict[str, float]:
        """Numbers of this slot by name."""
        values: dict[str, float] = {
            "steps": self.num_steps,
            "prompt_tokens": self.num_prompt_tokens,
            "generation_tokens": self.num_generation_tokens,
        }
        if self.model is not None:
            scheduler = self.model.scheduler
            values["num_requests_running"] = scheduler.num_running
            values["num_requests_waiting"] = scheduler.num_waiting
            values["num_preemptions"] = scheduler.num_preemptions
            values["prefix_cache_queries"] = scheduler.num_prompt_tokens_queried
            values["prefix_cache_hits"] = scheduler.num_prompt_tokens_cached
            values["kv_blocks_live"] = sum(pool.num_live for pool in scheduler.kv.pools)
            values["kv_blocks"] = sum(pool.num_blocks for pool in scheduler.kv.pools)
        return values

    def _take_logits(self, generation: Generation, logits: torch.Tensor) -> None:
        """Choose a request's next token and answer with it."""
        sequence, params = generation.sequence, generation.params
        if generation.max_tokens == 0:
            self.end(sequence.id, "length")
            return
        try:
            token = sample(logits, params, seed=generation.seed, choice=0, position=len(sequence.token_ids))
            piece, reason = generation.accept(token)
        except Exception as error:  # noqa: BLE001 - a request fails alone, whatever its parameters did
            self._drop(sequence.id)
            fail(self._emit, sequence.id, error)
            return
        self.num_generation_tokens += 1
        if piece is not None:
            self._emit(sequence.id, piece)
        if reason is not None:
            self._drop(sequence.id)
            self._emit(sequence.id, generation.finished(reason))

    def _drop(self, request_id: int) -> None:
        generation = self.generations.pop(request_id)
        if self.model is not None:
            self.model.scheduler.remove(generation.sequence)


def _check_lengths(token_ids: tuple[int, ...], params: SamplingParams, model: LoadedModel) -> int:
    """Return how many tokens the reply may take."""
    limit, length = model.spec.context_length, len(token_ids)
    if not token_ids:
        raise InvalidRequestError("The prompt is empty: there is nothing to answer. Type something first.")
    for token in (min(token_ids), max(token_ids)):
        if not 0 <= token < model.spec.vocab_size:
            raise InvalidRequestError(f"token ids must be 0 to {model.spec.vocab_size - 1:,}, got {token:,}.")
    room, asked = limit - length, params.max_tokens
    if room < (1 if asked is None else asked):
        reply = "at least 1 token" if asked is None else f"{asked:,} tokens"
        raise ContextLengthError(
            f"The prompt has {length:,} tokens and the reply may take {reply}, "
            f"but this model's context holds {limit:,}. Shorten the prompt or the reply."
        )
    return room if asked is None else asked


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
