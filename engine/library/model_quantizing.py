"""`quantize_model`: a model of the library in fewer bits as a new model of it, and what that costs on a text.

Everything is made and measured in the library's partial folder; the new model gets its name in one rename at the very
end, so cancelling or a full disk at any moment leaves nothing. Both perplexities are measured on one back end: the one
that would run both models, else PyTorch on the CPU. Blocking; sets the number of torch's threads.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

import torch

from inglenook.engine.backend import Backend, Progress
from inglenook.engine.backend_choice import choose_backend
from inglenook.engine.cpu import default_num_threads
from inglenook.engine.encoder_file import is_encoder
from inglenook.engine.errors import InvalidRequestError, NotEnoughMemoryError, UnsupportedModelError
from inglenook.engine.library.fetch import check_room
from inglenook.engine.library.model_import import inspect_model, shown
from inglenook.engine.library.perplexity import PerplexityChange, compare, token_losses
from inglenook.engine.model_library import InstalledModel, ModelLibrary, ModelRecord
from inglenook.engine.native_backend import NAME as NATIVE
from inglenook.engine.native_backend import NativeBackend
from inglenook.engine.tokenizer.tokenizer import Tokenizer
from inglenook.engine.weights.loader import ModelFile, open_model
from inglenook.engine.weights.quantize import (
    Quantization,
    QuantizationPlan,
    plan_quantization,
    quantize_folder,
)
from inglenook.engine.weights.quantize_groups import Quanto

Stage = Literal["quantise", "before", "after"]


class StageProgress(Protocol):
    """What is told how far a stage is."""

    def __call__(self, stage: Stage, done: int, total: int) -> None:
        """Take what is going on, how much of it is done, and the whole; cancels by raising."""


@dataclass(frozen=True, slots=True)
class QuantizedModel:
    """The new model, what its matrices became, and the cost.

    words: the back end that measured the cost; where `change` is None, why it was not measured.
    """

    model: InstalledModel
    plan: QuantizationPlan
    source_bytes: int
    change: PerplexityChange | None
    words: str


def quantize_model(
    library: ModelLibrary,
    source: Path,
    *,
    called: str,
    name: str,
    how: Quantization,
    text: str | None,
    title: str,
    licence: str,
    progress: StageProgress,
) -> QuantizedModel:
    """Quantise the safetensors folder `source` into the library under `name`.

    called: what the user calls the source.
    text: to measure the perplexity on; None measures nothing.
    title, licence: of the source; they go on with the new model.

    Raises:
        ModelNotFoundError: there is nothing at `source`.
        UnsupportedModelError: it is no model that can be quantised.
        LibraryError: the name is not allowed or taken, optimum-quanto is missing, or the disk is full.
    """
    torch.set_num_threads(default_num_threads())
    if source.exists() and is_encoder(source):
        raise UnsupportedModelError(f"{called} is a sentence encoder; only language models can be quantised.")
    costs: list[tuple[PerplexityChange | None, str]] = []
    with open_model(source) as original:
        plan = plan_quantization(called, original, how)
        quanto = Quanto()

        def make(target: Path) -> ModelRecord:
            check_room(name, target.parent, plan.size_bytes)
            quantize_folder(original, target, how, plan, quanto, _stage(progress, "quantise"))
            if text is not None:
                costs.append(_measure(called, original, target, text, progress))
            facts = inspect_model(target)
            return ModelRecord(
                title=f"{title}, {how.weights}",
                kind="chat",
                licence=licence,
                origin=shown(called),
                size_bytes=facts.size_bytes,
                num_parameters=facts.num_parameters,
                kv_bytes_per_token=facts.kv_bytes_per_token,
            )

        model = library.quantize(called, name=name, make=make)
        change, words = costs[0] if costs else (None, "it was not asked for")
        return QuantizedModel(model, plan, original.size_bytes, change, words)


def _measure(
    called: str, original: ModelFile, target: Path, text: str, progress: StageProgress
) -> tuple[PerplexityChange | None, str]:
    """Measure both models on the text; the words name the back end, or say why nothing was measured."""
    with open_model(target) as result:
        backend = _common_backend(original, result)
        try:
            with Tokenizer.from_model_file(original) as tokenizer:
                ids = tokenizer.encode_text(text).token_ids
            before = token_losses(called, backend, original.spec, original, ids, _stage(progress, "before"))
            after = token_losses(called, backend, result.spec, result, ids, _stage(progress, "after"))
        except (NotEnoughMemoryError, InvalidRequestError, UnsupportedModelError) as error:
            return None, str(error)
    return compare(before, after), backend.name


def _stage(progress: StageProgress, stage: Stage) -> Progress:
    return lambda done, total: progress(stage, done, total)


def _common_backend(original: ModelFile, result: ModelFile) -> Backend:
    """The back end that would run both models; the native one keeps no packed copy of either."""
    chosen = [choose_backend("auto", file.spec, file) for file in (original, result)]
    if chosen[0].name != chosen[1].name:
        return choose_backend("torch-cpu", original.spec, original)
    return NativeBackend(is_kept=False) if chosen[0].name == NATIVE else chosen[0]
