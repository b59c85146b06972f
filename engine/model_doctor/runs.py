"""The model doctor's runs: a known text, a reply, and how fast both went; with a comparison and a trial of others.

All keep to a deadline: what there is no time for is amber and says so.
"""

from __future__ import annotations

import dataclasses
import math
import time
from dataclasses import dataclass

import torch

from inglenook.engine.backend import Backend
from inglenook.engine.backend_choice import choose_backend
from inglenook.engine.errors import NotEnoughMemoryError
from inglenook.engine.kv_cache import BLOCK_SIZE
from inglenook.engine.memory import check_fit, estimate_need, kv_bytes, memory_state
from inglenook.engine.memory_plan import memory_places
from inglenook.engine.model_doctor.deadline import OutOfTimeError, until
from inglenook.engine.model_doctor.layers import compare_with_reference
from inglenook.engine.model_doctor.report import NO_TIME, Finding, Measured
from inglenook.engine.model_doctor.rotary import rotary_order
from inglenook.engine.model_doctor.sequence import Sequence
from inglenook.engine.tokenizer.tokenizer import Tokenizer
from inglenook.engine.weights.loader import ModelFile

# A sound model writes plain prose for about 1 bit a byte; noise costs 3 and more.
_BITS_RED, _BITS_AMBER = 2.0, 1.6
_REPLY_TOKENS = 24
_TEXT = """\
The lighthouse stood at the end of a long stone pier, and every evening before dark the keeper walked out to light \
the lamp. In winter the wind came hard from the north and the waves broke over the wall, so that he had to hold on to \
the iron rail with both hands. He had done this for thirty years. When the ships passed, far out on the grey water, \
he counted them and wrote their number in a book, together with the time and the weather. Nobody had ever asked him \
to keep the book, but he thought that someone might want to know. In summer his granddaughter came to stay with him. \
She was seven years old and asked a great many questions. Why was the light white and not red? How far away could it \
be seen? What happened if it went out? He answered all of them as well as he could, and what he did not know, they \
looked up together in the evening."""


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What the runs measured."""

    bits_per_byte: float
    num_tokens: int
    measured: Measured


def run_findings(
    file: ModelFile, tokenizer: Tokenizer, backend: str, num_threads: int, deadline: float
) -> tuple[list[Finding], RunFacts | None]:
    """Run a model until `deadline`, a `time.perf_counter()`; the facts are None where nothing could be measured."""
    torch.set_num_threads(num_threads)
    started = time.perf_counter()
    spec = dataclasses.replace(file.spec, context_length=min(file.spec.context_length, 1024))
    chosen = choose_backend(backend, spec, file, num_threads=num_threads)
    ids = list(tokenizer.encode_text(_TEXT).token_ids)[: spec.context_length - _REPLY_TOKENS - 1]
    early = started + (deadline - started) / 4
    name = chosen.name if backend == "auto" else backend  # which may say more: "native-cpu:avx2"
    findings = [compare_with_reference(file, spec, name, ids, early)]
    groups = chosen.kv_groups(spec)
    try:
        for place in memory_places(spec, file.size_bytes, chosen):
            free = memory_state().free_bytes if place.free_bytes is None else place.free_bytes
            check_fit(file.name, estimate_need(place.weight_bytes, kv_bytes(place.groups, len(ids))), free)
    except NotEnoughMemoryError as error:
        return [*findings, Finding("memory", "amber", str(error))], None
    loading = time.perf_counter()
    try:
        model = chosen.load(spec, file, until(deadline))
    except OutOfTimeError:
        return [
            *findings,
            Finding("text", "amber", f"{NO_TIME}: loading took too long."),
        ], None
    load_s = time.perf_counter() - loading
    try:
        runner = Sequence(model, spec, len(groups), len(ids) + _REPLY_TOKENS)
        # a part of the time is left for the reply and for the order of rows
        text = _read(
            runner, tokenizer, ids, chosen.step_tokens(spec), deadline - (deadline - time.perf_counter()) / 2
        )
        findings += [text.finding]
        if text.finding.light == "red" and not math.isfinite(text.bits_per_byte):
            return findings, None
        reply, speed = _write(runner, text.next_token, deadline - (deadline - time.perf_counter()) / 3)
        findings.append(reply)
        measured = Measured(
            backend=chosen.name,
            prefill_tokens_per_s=text.tokens_per_s,
            decode_tokens_per_s=speed,
            weight_bytes=model.weight_bytes,
            kv_bytes_per_token=sum(group.block_bytes for group in groups) // BLOCK_SIZE,
            load_s=load_s,
            bits_per_byte=text.bits_per_byte,
        )
        findings.append(_speed(measured, chosen))
    finally:
        model.close()
    findings.append(rotary_order(file, spec, tokenizer, ids, deadline))
    return findings, RunFacts(text.bits_per_byte, text.num_tokens, measured)


def _speed(measured: Measured, backend: Backend) -> Finding:
    slow = measured.decode_tokens_per_s < 2
    return Finding(
        "speed",
        "amber" if slow else "green",
        f"On {measured.backend}: reads {measured.prefill_tokens_per_s:,.1f} and writes "
        f"{measured.decode_tokens_per_s:,.1f} tokens/s, with {measured.weight_bytes / 1e6:,.0f} MB of weights "
        f"and {measured.kv_bytes_per_token / 1e3:,.1f} KB a token; {backend.reason}.",
    )


@dataclass(frozen=True, slots=True)
class _Read:
    finding: Finding
    bits_per_byte: float
    num_tokens: int
    tokens_per_s: float
    next_token: int


def _read(runner: Sequence, tokenizer: Tokenizer, ids: list[int], step_tokens: int, deadline: float) -> _Read:
    """Read the known text, as much of it as the time allows, and count what it costs."""
    nats, num_bytes, done, seconds = 0.0, 0, 0, 0.0
    step = max(16, min(step_tokens, 64))
    while done < len(ids) - 1 and (done == 0 or time.perf_counter() < deadline):
        part = ids[done : min(done + step, len(ids) - 1)]
        started = time.perf_counter()
        logits = runner.step(part, wants_all=True)
        seconds += time.perf_counter() - started
        if not torch.isfinite(logits).all():
            finding = Finding("text", "red", "The model gives numbers that are infinite or none.")
            return _Read(finding, math.inf, done, 0.0, ids[done])
        targets = ids[done + 1 : done + 1 + len(part)]
        nats += float(torch.nn.functional.cross_entropy(logits, torch.tensor(targets), reduction="sum"))
        num_bytes += sum(len(tokenizer.token_bytes(t)) for t in targets)
        done += len(part)
    bits = nats / math.log(2) / max(num_bytes, 1)
    speed = done / max(seconds, 1e-9)
    words = f"Plain English costs {bits:.2f} bits a byte"
    if bits > _BITS_RED:
        finding = Finding("text", "red", f"{words}, as much as noise: the model is damaged or misread.")
    elif bits > _BITS_AMBER:
        finding = Finding("text", "amber", f"{words}, which is much; fine for a model of other languages.")
    else:
        finding = Finding("text", "green", f"{words}.")
    return _Read(finding, bits, done, speed, ids[done])


def _write(runner: Sequence, token: int, deadline: float) -> tuple[Finding, float]:
    """Go on greedily for some tokens; says whether they repeat, and their number a second."""
    written: list[int] = []
    started = time.perf_counter()
    for _ in range(_REPLY_TOKENS):
        logits = runner.step([token], wants_all=False)[0]
        token = int(logits.argmax())
        written.append(token)
        if not torch.isfinite(logits).all():
            return Finding("reply", "red", "The model gives numbers that are infinite or none."), 0.0
        if time.perf_counter() > deadline and len(written) >= 4:
            break
    speed = len(written) / (time.perf_counter() - started)
    if len(written) >= 8 and len(set(written)) == 1:
        return Finding("reply", "red", "The model writes one token over and over."), speed
    if len(written) >= 16 and len(set(written)) <= 3:
        return Finding("reply", "amber", "The model writes the same few tokens over and over."), speed
    return Finding("reply", "green", f"{len(written)} tokens written, {len(set(written))} different."), speed
