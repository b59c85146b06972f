"""`LoadedEncoder`: a sentence encoder in its slot — weights, tokenizer, and one bounded step of embedding at a time.

`load_encoder` reads a sentence-transformers folder: model.safetensors, config.json, tokenizer.json, and, where they
are there, 1_Pooling/config.json and sentence_bert_config.json. It refuses by name what it does not run.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import tokenizers
import torch

from inglenook.engine.cpu import default_num_threads
from inglenook.engine.errors import ModelFileError, UnsupportedModelError
from inglenook.engine.memory import check_fit, estimate_need, memory_state
from inglenook.engine.models.encoder import Encoder, EncoderSpec
from inglenook.engine.request import Loaded, LoadOptions, LoadProgress
from inglenook.engine.weights.json_file import read_json_file
from inglenook.engine.weights.metadata import Metadata
from inglenook.engine.weights.safetensors_folder import SafetensorsFolder
from inglenook.kernels.dequantize import dequantize

MAX_CONFIG_BYTES = 1 << 20
MAX_TOKENIZER_BYTES = 64 << 20

# Tokens a step, padding counted: about 50 ms of a six-layer encoder on one core.
_STEP_TOKENS = 768


@dataclass(slots=True)
class LoadedEncoder:
    """Everything of one slot. `facts` is what its `Loaded` event said."""

    facts: Loaded
    encoder: Encoder
    tokenizer: tokenizers.Tokenizer

    def tokenize(self, texts: tuple[str, ...]) -> tuple[list[list[int]], list[int]]:
        """Return each text's token ids, special tokens included, and the indices of texts that were cut."""
        longest = self.encoder.spec.max_tokens
        special = self.tokenizer.num_special_tokens_to_add(False)
        sequences, cut = [], []
        for index, text in enumerate(texts):
            encoding = self.tokenizer.encode(text, add_special_tokens=False)
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


def is_encoder(path: Path) -> bool:
    """Whether a path is a model folder whose config.json names an encoder."""
    config = path / "config.json"
    if not config.is_file():
        return False
    return (
        Metadata(read_json_file(config, MAX_CONFIG_BYTES), "config.json").text("model_type", default="")
        == "bert"
    )


def load_encoder(
    path: Path, slot: str, options: LoadOptions, progress: Callable[[LoadProgress], None]
) -> LoadedEncoder:
    """Load the sentence encoder in the folder `path`; `progress` may raise to cancel.

    Raises:
        ModelFileError, UnsupportedModelError, NotEnoughMemoryError: as their docstrings say.
    """
    started = time.perf_counter()
    torch.set_num_threads(options.num_threads or default_num_threads())
    progress(LoadProgress("Reading the model file", 0, 1))
    spec = _read_spec(path)
    tokenizer = _read_tokenizer(path / "tokenizer.json", spec)
    folder = SafetensorsFolder(path)
    try:
        shapes = spec.tensor_shapes()
        total = sum(4 * int(np.prod(shape)) for shape in shapes.values())
        check_fit(path.name, estimate_need(total, 0), memory_state().free_bytes)
        done = 0

        def read(name: str) -> torch.Tensor:
            nonlocal done
            tensor = folder.tensor(name)
            if tensor.shape != shapes[name]:
                raise ModelFileError(
                    f"{path.name}: {name} has shape {tensor.shape}, config.json says {shapes[name]}."
                )
            values = dequantize(tensor, torch.float32).clone()
            done += values.nbytes
            progress(LoadProgress("Loading", done, total))
            return values

        encoder = Encoder(spec, read)
    finally:
        folder.close()
    facts = Loaded(
        slot=slot,
        name=path.name,
        architecture=spec.architecture,
        backend="torch-cpu",
        backend_reason="encoders run in float32 on PyTorch's CPU operations",
        context_length=spec.max_tokens,
        weight_bytes=encoder.weight_bytes,
        kv_bytes=0,
        load_s=time.perf_counter() - started,
    )
    return LoadedEncoder(facts, encoder, tokenizer)


def _read_spec(path: Path) -> EncoderSpec:
    config = Metadata(read_json_file(path / "config.json", MAX_CONFIG_BYTES), f"{path.name}/config.json")
    for key, wanted in (
        ("model_type", "bert"),
        ("hidden_act", "gelu"),
        ("position_embedding_type", "absolute"),
    ):
        found = config.text(key, default=wanted)
        if found != wanted:
            raise UnsupportedModelError(
                f"{config.source}: {key} is {found!r}; only {wanted!r} is supported here."
            )
    hidden, heads = config.integer("hidden_size", 1, 1 << 16), config.integer("num_attention_heads", 1, 1024)
    if hidden % heads:
        raise config.error("num_attention_heads", f"is {heads}, which does not divide hidden_size {hidden}")
    positions = config.integer("max_position_embeddings", 1, 1 << 20)
    limit = positions
    if (path / "sentence_bert_config.json").is_file():
        limits = Metadata(
            read_json_file(path / "sentence_bert_config.json", MAX_CONFIG_BYTES), "sentence_bert_config.json"
        )
        limit = min(positions, limits.integer("max_seq_length", 3, 1 << 20, default=positions))
    return EncoderSpec(
        architecture="bert",
        vocab_size=config.integer("vocab_size", 1, 1 << 21),
        hidden_size=hidden,
        num_layers=config.integer("num_hidden_layers", 1, 512),
        num_heads=heads,
        intermediate_size=config.integer("intermediate_size", 1, 1 << 20),
        num_positions=positions,
        num_types=config.integer("type_vocab_size", 1, 1024, default=2),
        norm_eps=config.number("layer_norm_eps", 0.0, 1.0, default=1e-12),
        pooling="first" if _pools_first(path) else "mean",
        max_tokens=limit,
    )


def _pools_first(path: Path) -> bool:
    file = path / "1_Pooling" / "config.json"
    if not file.is_file():
        return False
    pooling = Metadata(read_json_file(file, MAX_CONFIG_BYTES), "1_Pooling/config.json")
    chosen = [key for key in pooling if key.startswith("pooling_mode_") and pooling.flag(key)]
    if chosen not in (["pooling_mode_mean_tokens"], ["pooling_mode_cls_token"]):
        raise UnsupportedModelError(
            f"{pooling.source}: pooling by {', '.join(chosen) or 'nothing'} is not supported."
        )
    return chosen == ["pooling_mode_cls_token"]


def _read_tokenizer(path: Path, spec: EncoderSpec) -> tokenizers.Tokenizer:
    if not path.is_file():
        raise ModelFileError(
            f"{path.parent.name} has no tokenizer.json. The folder is incomplete; fetch it again."
        )
    if path.stat().st_size > MAX_TOKENIZER_BYTES:
        raise ModelFileError(
            f"tokenizer.json has {path.stat().st_size:,} bytes; at most {MAX_TOKENIZER_BYTES:,} are allowed."
        )
    try:
        tokenizer = tokenizers.Tokenizer.from_str(path.read_text(encoding="utf-8"))
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # noqa: BLE001 - the library panics with a BaseException
        raise ModelFileError(f"tokenizer.json cannot be read: {str(error)[:200]}") from None
    if tokenizer.get_vocab_size() > spec.vocab_size:
        raise ModelFileError(
            f"tokenizer.json has {tokenizer.get_vocab_size():,} tokens, config.json says {spec.vocab_size:,}."
        )
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer
