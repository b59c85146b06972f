"""`Slot`: a named place for one model or sentence encoder, its open work, and one step of it at a time.

Used on the engine thread only. Every request in `completions` is answered here: text as it comes, then exactly one
`Finished` or `Failed`.
"""

from __future__ import annotations

import itertools
import logging
import secrets
import threading
import time
import traceback

from inglenook.engine.backend import StepCancelledError
from inglenook.engine.cards.draw import Draw
from inglenook.engine.completion import Completion
from inglenook.engine.endings import cancelled, fail
from inglenook.engine.errors import (
    ContextLengthError,
    InvalidRequestError,
    NotEnoughMemoryError,
)
from inglenook.engine.generation import Generation
from inglenook.engine.homes.messages import EmbedTexts, Emit, LoadModel, Notice, Submit, UnloadModel
from inglenook.engine.loaded_encoder import EmbeddingJob, LoadedEncoder
from inglenook.engine.loaded_model import LoadedModel
from inglenook.engine.memory_ladder import MemoryLadder, is_out_of_memory
from inglenook.engine.metrics import SlotMetrics
from inglenook.engine.model_runner import Row
from inglenook.engine.prompt import Prompt
from inglenook.engine.request import Embedded, Request, SamplingParams
from inglenook.engine.sequence import Chunk, Sequence, StepPlan
from inglenook.engine.speculative.prompt_lookup import PromptLookup
from inglenook.engine.step_cost import StepCost

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
        self.after_load: list[LoadModel | UnloadModel] = []
        self.completions: dict[int, Completion] = {}
        self.jobs: dict[int, EmbeddingJob] = {}
        self.metrics = SlotMetrics()
        self._cost = StepCost()
        self._emit = emit
        self._in_flight: frozenset[int] = frozenset()  # the requests of the step that is being computed
        self._unwanted: set[int] = set()  # those of them that nobody wants any more

    def add(self, request_id: int, request: Request, prompt: Prompt, submitted: float) -> None:
        """Start a request whose prompt is encoded; `submitted` is its `time.perf_counter()`.

        Raises:
            InvalidRequestError: an empty prompt, or a token id outside the vocabulary.
            ContextLengthError: prompt and reply exceed the context.
        """
        assert self.model is not None
        model, params, token_ids = self.model, request.sampling, prompt.token_ids
        max_tokens = _check_lengths(token_ids, params, model)
        seed = secrets.randbits(63) if params.seed is None else params.seed
        adapter, salt = prompt.adapter, f"salt {request.cache_salt}" if request.cache_salt else ""
        if adapter is not None:  # keys and values differ by it, and no salt may be taken for it
            salt = f"adapter {adapter.content_hash} {salt}"
        stop_ids = frozenset(params.stop_token_ids)
        if not params.ignore_eos:
            stop_ids |= model.tokenizer.stop_token_ids

        def generate(choice: int) -> Generation:
            return Generation(
                Sequence(
                    request_id,
                    list(token_ids),
                    len(token_ids),
                    choice=choice,
                    priority=request.priority,
                    salt=salt,
                    owner=request.owner,
                    adapter=adapter,
                ),
                params,
                seed=seed,
                max_tokens=max_tokens,
                stop_token_ids=stop_ids,
                detokenizer=model.tokenizer.detokenizer(
                    token_ids, is_chat=request.messages is not None and not request.reply_begin
                ),
                lookup=PromptLookup() if model.speculates else None,
            )

        completion = Completion(
            request_id,
            generate,
            num_choices=params.n,
            seed=seed,
            submitted=submitted,
            notices=prompt.notices,
            left_out=prompt.left_out,
        )
        self.metrics.num_prompt_tokens += len(token_ids)
        self.completions[request_id] = completion
        model.scheduler.add(completion.choices[0].sequence)

    def step(self) -> None:
        """Plan and run one step, then hand its tokens out. When this raises, call `fail_all`.

        A step that was interrupted or ran out of memory counts for nothing, and is planned anew by the next call.

        Raises:
            NotEnoughMemoryError: memory ran out, and there is nothing left to give up.
        """
        assert self.model is not None
        model = self.model
        started = time.perf_counter()
        self._draft()
        plan = model.scheduler.plan()
        assert plan.chunks, "requests are open but nothing can be scheduled"
        model.runner.copy_blocks(model.scheduler.kv.take_copies())
        self._in_flight = frozenset(chunk.sequence.id for chunk in plan.chunks)
        for request_id in self._in_flight:
            self.completions[request_id].note_begin(started)
        try:
            rows = model.runner.run(plan, self._draws(plan))
        except StepCancelledError:
            return
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            self._make_room(error)
            return
        finally:
            self._in_flight, self._unwanted = frozenset(), set()
        model.scheduler.commit(plan)
        self.metrics.observe_step(plan.num_tokens)
        if plan.num_tokens == sum(chunk.num_logits for chunk in plan.chunks):
            seconds = time.perf_counter() - started
            self._cost.observe(plan.num_tokens, seconds)
            self.metrics.observe_bandwidth(model.bytes_read(plan), seconds)
        # Taking a token changes what its chunk says of itself, so the rows are shared out first.
        ends = list(itertools.accumulate(chunk.num_logits for chunk in plan.chunks))
        for chunk, start, end in zip(plan.chunks, [0, *ends], ends, strict=False):
            if end > start:
                self._take_logits(chunk, rows[start:end], plan)
        if not self.completions:
            model.scheduler.kv.integrity()

    def interrupt(self, request_id: int | None = None) -> None:
        """End the step in flight early if all its requests are unwanted; None makes all so. From any thread.

        When it comes too late, the next step is interrupted instead, which costs that step's time and nothing else.
        """
        in_flight, model = self._in_flight, self.model
        self._unwanted |= in_flight if request_id is None else {request_id}
        if model is not None and in_flight and in_flight <= self._unwanted:
            model.runner.cancel()

    def forget(self, owner: str) -> tuple[int, int]:
        """Cancel an owner's requests and drop its blocks; returns how many there were of each."""
        if self.model is None:
            return 0, 0
        mine = [c.id for c in self.completions.values() if c.choices[0].sequence.owner == owner]
        for request_id in mine:
            self.cancel(request_id)
        blocks = self.model.scheduler.kv.forget(owner)
        self.model.runner.blank(blocks)
        return len(mine), len(blocks)

    def fail_all(self, error: Exception) -> None:
        """Fail all requests after a step that raised, and start with an empty cache."""
        # Frames only: an exception's own text may quote a prompt.
        frames = "".join(traceback.format_tb(error.__traceback__))
        logger.error("a step failed in slot %s with %s:\n%s", self.name, type(error).__name__, frames)
        failed, self.completions = list(self.completions), {}
        for request_id in failed:
            fail(self._emit, request_id, error)
        if self.model is not None:
            self.model.reset()

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

    def cancel(self, request_id: int) -> None:
        """End a request now; what was held back of its text is given out first."""
        completion = self.completions[request_id]
        for generation in completion.choices:
            if generation.finish_reason is None:
                rest = generation.flush()
                if rest is not None:
                    self._emit(request_id, rest)
        self._drop(completion)
        self._finish(completion)

    def empty(self) -> None:
        """Cancel all requests and close the model or encoder."""
        for request_id in self.jobs:
            self._emit(request_id, cancelled("Embedding"))
        self.jobs, self.encoder = {}, None
        for request_id in list(self.completions):
            self.cancel(request_id)
        if self.model is not None:
            self.model.close()
            self.model = None

    def stats(self) -> dict[str, float]:
        """Numbers of this slot by name."""
        values = self.metrics.values()
        if self.model is not None:
            scheduler = self.model.scheduler
            values["num_requests_running"] = scheduler.num_running
            values["num_requests_waiting"] = scheduler.num_waiting
            values["num_preemptions"] = scheduler.num_preemptions
            values["prefix_cache_queries"] = scheduler.num_prompt_tokens_queried
            values["prefix_cache_hits"] = scheduler.num_prompt_tokens_cached
            values["kv_blocks_live"] = sum(pool.num_live for pool in scheduler.kv.pools)
            values["kv_tokens_live"] = scheduler.num_live_tokens * len(scheduler.kv.pools)
            values["kv_blocks"] = sum(pool.num_blocks for pool in scheduler.kv.pools)
            values["kv_cache_usage_perc"] = values["kv_blocks_live"] / values["kv_blocks"]
        return values

    def _make_room(self, error: Exception) -> None:
        """Give something up so that the next try may fit, and tell people if it is the context."""
        assert self.model is not None
        sentence = MemoryLadder(self.model).climb()
        if sentence is None:
            raise NotEnoughMemoryError(
                "The computer ran out of memory while answering. Close other programs, ask for a shorter context, or "
                "use a smaller model."
            ) from error
        if sentence:
            self._emit(0, Notice(self.name, sentence, self.model.spec.context_length))
            for completion in list(self.completions.values()):
                self._fit_into_context(completion, sentence)

    def _fit_into_context(self, completion: Completion, sentence: str) -> None:
        """Let a running request go on within a context that became shorter, or fail it."""
        assert self.model is not None
        limit = self.model.spec.context_length
        length = max(len(g.sequence.token_ids) for g in completion.choices)
        if length >= limit:
            self._drop(completion)
            error = ContextLengthError(
                f"{sentence} This conversation has {length:,} already. Start a new one."
            )
            fail(self._emit, completion.id, error)
            return
        completion.add_notice(sentence)
        for generation in completion.choices:
            room = limit - len(generation.sequence.token_ids)
            generation.max_tokens = min(generation.max_tokens, generation.completion_tokens + room)

    def _draft(self) -> None:
        """Let every decoding sequence guess its next tokens."""
        assert self.model is not None
        decoding = [
            self.completions[sequence.id].choices[sequence.choice]
            for sequence in self.model.scheduler.decoding
        ]
        for generation in decoding:
            generation.draft(lambda number: self._cost.delay(len(decoding) + number, len(decoding)))

    def _draws(self, plan: StepPlan) -> list[Draw | None]:
        """How each row's token is chosen, where the model's device may choose it."""
        drawer = None if self.model is None else self.model.runner.drawer
        if drawer is None:
            return []
        draws: list[Draw | None] = []
        for chunk in plan.chunks:
            completion = self.completions[chunk.sequence.id]
            generation = completion.choices[chunk.sequence.choice]
            for row in range(chunk.num_logits):
                # other choices of the same prompt take their first token from the same row
                draw = generation.next_draw(row) if completion.has_all_choices else None
                draws.append(draw if draw is not None and drawer.takes(draw) else None)
        return draws

    def _take_logits(self, chunk: Chunk, logits: list[Row], plan: StepPlan) -> None:
        """Choose a sequence's next tokens: one, and one more for each draft that was chosen too.

        logits: its rows, `num_logits`.
        """
        completion = self.completions.get(chunk.sequence.id)
        if completion is None:
            return  # another choice of the same request failed in this step
        generation = completion.choices[chunk.sequence.choice]
        accepted = 0
        try:
            if generation.max_tokens == 0:
                for ended in (generation, *completion.add_choices()):
                    ended.finish_reason = "length"
            else:
                for other in completion.add_choices():
                    self._take_token(completion, other, logits[0])
                    if other.finish_reason is None and self.model is not None:
                        self.model.scheduler.fork(chunk.sequence, other.sequence)
                for row, draft in zip(logits, [*chunk.drafts, None], strict=True):
                    token_id = self._take_token(completion, generation, row)
                    if token_id != draft or generation.finish_reason is not None:
                        break
                    accepted += 1
        except Exception as error:  # noqa: BLE001 - a request fails alone, whatever its parameters did
            self._drop(completion)
            fail(self._emit, completion.id, error)
            return
        self._settle(chunk, generation, accepted, plan)
        if completion.is_finished:
            del self.completions[completion.id]
            self._finish(completion)

    def _take_token(self, completion: Completion, generation: Generation, logits: Row) -> int:
        token_id, piece = generation.take(logits)
        completion.count_token()
        self.metrics.num_generation_tokens += 1
        if piece is not None:
            self._emit(completion.id, piece)
        return token_id

    def _settle(self, chunk: Chunk, generation: Generation, accepted: int, plan: StepPlan) -> None:
        """Tell the scheduler which drafts were right, and the drafter whether they paid."""
        assert self.model is not None
        scheduler = self.model.scheduler
        if chunk.drafts:
            self.metrics.observe_drafts(len(chunk.drafts), accepted)
            scheduler.confirm(chunk.sequence, accepted)
            drafts = sum(len(c.drafts) for c in plan.chunks)
            delay = self._cost.delay(plan.num_tokens, plan.num_tokens - drafts)
            if generation.lookup is not None:
                generation.lookup.observe(len(chunk.drafts), accepted, delay * len(chunk.drafts) / drafts)
        if generation.finish_reason is not None:
            scheduler.remove(chunk.sequence)

    def _finish(self, completion: Completion) -> None:
        """Answer a request that is over, and count it."""
        finished = completion.finished()
        self.metrics.observe_end(finished, completion.phases(), completion.choices[0].params)
        self._emit(completion.id, finished)

    def _drop(self, completion: Completion) -> None:
        """Take a request out with all of its sequences."""
        self.completions.pop(completion.id, None)
        if self.model is not None:
            for generation in completion.choices:
                self.model.scheduler.remove(generation.sequence)


def _check_lengths(token_ids: tuple[int, ...], params: SamplingParams, model: LoadedModel) -> int:
    """Return how many tokens the reply may take."""
    limit, length = model.spec.context_length, len(token_ids)
    if not token_ids:
        raise InvalidRequestError("The prompt is empty: there is nothing to answer. Type something first.")
    last = model.spec.vocab_size - 1
    for name, token in [
        *(("token ids", t) for t in token_ids),
        *(("logit_bias token ids", t) for t in params.logit_bias),
        *(("stop_token_ids", t) for t in params.stop_token_ids),
    ]:
        if not 0 <= token <= last:
            raise InvalidRequestError(f"{name} must be 0 to {last:,}, got {token:,}.")
    room, asked = limit - length, params.max_tokens
    if room < (1 if asked is None else asked):
        reply = "at least 1 token" if asked is None else f"{asked:,} tokens"
        raise ContextLengthError(
            f"The prompt has {length:,} tokens and the reply may take {reply}, "
            f"but this model's context holds {limit:,}. Shorten the prompt or the reply."
        )
    return room if asked is None else asked
