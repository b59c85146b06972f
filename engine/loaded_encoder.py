"""`LoadedEncoder`: a sentence encoder in its slot — weights, tokenizer, and one bounded step of embedding at a time.

`load_encoder` reads what `encoder_file.py` opens. Where the processor multiplies bfloat16 in tiles (AMX), the layers'
products are in it: twice as fast, with vectors within 1e-4 (cosine) of float32's; the back end "reference" is float32
everywhere. Models such as E5 want a prefix before questions and another before passages: `tokenize` puts it there when
it is told what the texts are.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import tokenizers
import torch

from inglenook.engine.cpu import default_num_threads
from inglenook.engine.encoder_file import EncoderPrefixes, is_encoder, open_encoder
from inglenook.engine.memory import check_fit, estimate_need, memory_state
from inglenook.engine.memory_promises import MemoryPromises
from inglenook.engine.models.encoder import Encoder
from inglenook.engine.models.encoder_spec import WORDS
from inglenook.engine.models.word_table import WordTable, table_bytes
from inglenook.engine.request import Loaded, LoadOptions, LoadProgress, Purpose
from inglenook.kernels.dequantize import dequantize

__all__ = ["EmbeddingJob", "LoadedEncoder", "is_encoder", "load_encoder"]

# Tokens a step, padding counted: about 50 ms of a six-layer encoder on one core.
_STEP_TOKENS = 768


@dataclass(slots=True)
class LoadedEncoder:
    """Everything of one slot. `facts` is what its `Loaded` event said."""

    facts: Loaded
    encoder: Encoder
    tokenizer: tokenizers.Tokenizer
    prefixes: EncoderPrefixes
    lowercases: bool

    def tokenize(
        self, texts: tuple[str, ...], purpose: Purpose = "plain"
    ) -> tuple[list[list[int]], list[int]]:
        """Return each text's token ids, special tokens included, and the indices of texts that were cut.

        purpose: what the texts are, for the prefix; "plain" has none.
        """
        prefix = "" if purpose == "plain" else getattr(self.prefixes, purpose)
        longest = self.encoder.spec.max_tokens
        special = self.tokenizer.num_special_tokens_to_add(False)
        sequences, cut = [], []
        inputs = [prefix + (text.lower() if self.lowercases else text) for text in texts]
        # A batch, since only that lets other threads run meanwhile (a heartbeat, say).
        for index, encoding in enumerate(self.tokenizer.encode_batch(inputs, add_special_tokens=False)):
            if len(encoding.ids) > longest - special:
                encoding.truncate(longest - special)
                cut.append(index)
            encoding = self.tokenizer.post_process(encoding)
            sequences.append(encoding.ids)
        return sequences, cut

    def close(self) -> None:
        """Nothing to end: memory goes with the object."""


class EmbeddingJob:
    """Texts on their way to vectors, a bounded step at a time, texts of like length together."""

    def __init__(self, model: LoadedEncoder, sequences: list[list[int]], cut: list[int]) -> None:
        self.cut = tuple(cut)
        self._encoder = model.encoder
        self._sequences = sequences
        self._order = sorted(range(len(sequences)), key=lambda i: len(sequences[i]))
        self._done = 0
        self.vectors: npt.NDArray[np.float32] = np.zeros(
            (len(sequences), model.encoder.spec.hidden_size), np.float32
        )

    @property
    def is_finished(self) -> bool:
        """Whether every text has its vector."""
        return self._done == len(self._order)

    def step(self) -> None:
        """Encode the next few texts."""
        batch: list[int] = []
        for index in self._order[self._done :]:
            if batch and (len(batch) + 1) * len(self._sequences[index]) > _STEP_TOKENS:
                break
            batch.append(index)
        self.vectors[batch] = self._encoder.embed([self._sequences[i] for i in batch]).numpy()
        self._done += len(batch)


def load_encoder(
    path: Path,
    slot: str,
    options: LoadOptions,
    progress: Callable[[LoadProgress], None],
    promises: MemoryPromises | None = None,
) -> LoadedEncoder:
    """Load the sentence encoder at `path`, within the free memory that `promises` leaves; `progress` may raise to cancel.

    Raises:
        ModelFileError, UnsupportedModelError, NotEnoughMemoryError: as their docstrings say.
    """
    started = time.perf_counter()
    torch.set_num_threads(options.num_threads or default_num_threads())
    progress(LoadProgress("Reading the model file", 0, 1))
    with open_encoder(path) as file:
        spec = file.spec
        table = file.tensor(WORDS)
        shapes = {name: shape for name, shape in spec.tensor_shapes().items() if name != WORDS}
        total = table_bytes(table) + sum(4 * math.prod(shape) for shape in shapes.values())
        need, done = estimate_need(total, 0), 0
        promises = promises or MemoryPromises()
        with promises.deciding(slot) as reserved:
            check_fit(path.name, need, max(0, memory_state().free_bytes - reserved))
            promises.make(slot, lambda: need - done)

        def loaded(size: int) -> None:
            nonlocal done
            done += size
            progress(LoadProgress("Loading", done, total))

        def read(name: str) -> torch.Tensor:
            values = dequantize(file.tensor(name), torch.float32)
            loaded(values.nbytes)
            return values

        is_exact = options.backend == "reference" or not torch.cpu.get_capabilities().get("amx_bf16")
        words = WordTable(table)
        loaded(words.nbytes)
        encoder = Encoder(spec, words, read, torch.float32 if is_exact else torch.bfloat16)
    promises.drop(slot)  # all is taken
    facts = Loaded(
        slot=slot,
        name=path.name,
        architecture=spec.architecture,
        backend="reference" if options.backend == "reference" else "torch-cpu",
        backend_reason=f"encoders run in {'float32' if is_exact else 'bfloat16'} on PyTorch's CPU operations",
        context_length=spec.max_tokens,
        weight_bytes=encoder.weight_bytes,
        kv_bytes=0,
        load_s=time.perf_counter() - started,
    )
    return LoadedEncoder(facts, encoder, file.tokenizer, file.prefixes, file.lowercases)
