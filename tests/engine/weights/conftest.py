"""A GGUF file written by hand, field by field, with the place of each field marked so that tests can spoil it."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import numpy.typing as npt
import pytest
import torch

U8, I32, U32, F32, BOOL, STRING, ARRAY, U64 = 0, 5, 4, 6, 7, 8, 9, 10
_FORMATS = {U8: "<B", I32: "<i", U32: "<I", F32: "<f", BOOL: "<B", U64: "<Q"}

HIDDEN, HEADS, KV_HEADS, HEAD_SIZE, MLP, LAYERS, VOCAB = 64, 4, 2, 16, 96, 2, 40


@dataclass
class GGUFWriter:
    """Keys and tensors in, bytes out; `marks` has (offset, size) of each header field after `build`."""

    version: int = 3
    alignment: int = 32
    keys: list[tuple[str, int, Any]] = field(default_factory=list)
    tensors: list[tuple[str, str, tuple[int, ...], bytes]] = field(default_factory=list)
    marks: dict[str, tuple[int, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._out = bytearray()

    def key(self, name: str, code: int, value: Any) -> GGUFWriter:
        """Set a key, in place of an earlier one; an array's value is (element code, list)."""
        self.keys = [entry for entry in self.keys if entry[0] != name] + [(name, code, value)]
        return self

    def without(self, name: str) -> GGUFWriter:
        """Leave out a key or tensor."""
        self.keys = [entry for entry in self.keys if entry[0] != name]
        self.tensors = [entry for entry in self.tensors if entry[0] != name]
        return self

    def tensor(self, name: str, values: npt.NDArray[np.float32], kind: str = "F32") -> GGUFWriter:
        """Add a tensor of row-major values in one of the formats, in place of an earlier one."""
        data = gguf.quants.quantize(values, gguf.GGMLQuantizationType[kind]).tobytes()
        self.tensors = [entry for entry in self.tensors if entry[0] != name]
        self.tensors.append((name, kind, values.shape, data))
        return self

    def build(self) -> bytes:
        self._out = bytearray(b"GGUF")
        self.marks = {"magic": (0, 4)}
        self._put("<I", self.version, "version")
        self._put("<Q", len(self.tensors), "n_tensors")
        self._put("<Q", len(self.keys), "n_kv")
        for name, code, value in self.keys:
            self._string(name, f"key length of {name}")
            self._put("<I", code, f"type of {name}")
            self._value(name, code, value)
        offset = 0
        for name, kind, shape, data in self.tensors:
            self._string(name, f"name length of {name}")
            self._put("<I", len(shape), f"axes of {name}")
            for i, axis in enumerate(reversed(shape)):
                self._put("<Q", axis, f"axis {i} of {name}")
            self._put("<I", gguf.GGMLQuantizationType[kind], f"kind of {name}")
            self._put("<Q", offset, f"offset of {name}")
            offset += -(-len(data) // self.alignment) * self.alignment
        for *_, data in self.tensors:
            self._out += bytes(-len(self._out) % self.alignment) + data
        return bytes(self._out)

    def write(self, path: Path) -> Path:
        path.write_bytes(self.build())
        return path

    def _put(self, form: str, value: Any, mark: str) -> None:
        self.marks[mark] = (len(self._out), struct.calcsize(form))
        self._out += struct.pack(form, value)

    def _string(self, text: str, mark: str) -> None:
        self._put("<Q", len(text.encode()), mark)
        self._out += text.encode()

    def _value(self, name: str, code: int, value: Any) -> None:
        if code == STRING:
            self._string(value, f"length of {name}")
        elif code == ARRAY:
            element, items = value
            self._put("<I", element, f"element type of {name}")
            self._put("<Q", len(items), f"count of {name}")
            for i, item in enumerate(items):
                self._value(f"{name}[{i}]", element, item)
        else:
            self._put(_FORMATS[code], value, f"value of {name}")


def permuted(rows: npt.NDArray[np.float32], heads: int) -> npt.NDArray[np.float32]:
    """Halves to pairs, as converters to GGUF do for llama: row i of a head's half h goes to 2 i + h."""
    return rows.reshape(heads, 2, -1, *rows.shape[1:]).swapaxes(1, 2).reshape(rows.shape)


def hf_weights(architecture: str, tied: bool = True) -> dict[str, npt.NDArray[np.float32]]:
    """Random weights of the tiny model under canonical names, rotary halves as Hugging Face has them."""
    rng = np.random.default_rng(7)
    kv = KV_HEADS * HEAD_SIZE
    shapes: dict[str, tuple[int, ...]] = {"embedding": (VOCAB, HIDDEN), "output_norm": (HIDDEN,)}
    for i in range(LAYERS):
        layer: dict[str, tuple[int, ...]] = {
            "attention_norm": (HIDDEN,), "q": (HIDDEN, HIDDEN), "k": (kv, HIDDEN), "v": (kv, HIDDEN),
            "o": (HIDDEN, HIDDEN), "mlp_norm": (HIDDEN,), "gate": (MLP, HIDDEN), "up": (MLP, HIDDEN),
            "down": (HIDDEN, MLP),
        }  # fmt: skip
        if architecture == "qwen2":
            layer |= {"q_bias": (HIDDEN,), "k_bias": (kv,), "v_bias": (kv,)}
        shapes |= {f"layers.{i}.{name}": shape for name, shape in layer.items()}
    if not tied:
        shapes["head"] = (VOCAB, HIDDEN)
    return {name: rng.standard_normal(shape, dtype=np.float32) for name, shape in shapes.items()}


_GGUF_NAMES = {
    "attention_norm": "attn_norm.weight", "q": "attn_q.weight", "k": "attn_k.weight", "v": "attn_v.weight",
    "o": "attn_output.weight", "mlp_norm": "ffn_norm.weight", "gate": "ffn_gate.weight", "up": "ffn_up.weight",
    "down": "ffn_down.weight", "q_bias": "attn_q.bias", "k_bias": "attn_k.bias", "v_bias": "attn_v.bias",
    "embedding": "token_embd.weight", "output_norm": "output_norm.weight", "head": "output.weight",
}  # fmt: skip


def tiny_writer(architecture: str = "llama", tied: bool = True) -> GGUFWriter:
    """The tiny model: F32, but for Q4_0 keys, Q8_0 embedding and F16 values."""
    a = architecture
    writer = GGUFWriter()
    for name, code, value in (
        ("general.architecture", STRING, a), ("general.name", STRING, "Tiny"), ("general.alignment", U32, 32),
        ("general.tags", ARRAY, (STRING, [])), (f"{a}.block_count", U32, LAYERS), (f"{a}.context_length", U32, 128),
        (f"{a}.embedding_length", U32, HIDDEN), (f"{a}.feed_forward_length", U32, MLP),
        (f"{a}.attention.head_count", U32, HEADS), (f"{a}.attention.head_count_kv", U32, KV_HEADS),
        (f"{a}.attention.layer_norm_rms_epsilon", F32, 1e-5), (f"{a}.rope.freq_base", F32, 10_000.0),
        (f"{a}.rope.dimension_count", U32, HEAD_SIZE), ("tokenizer.ggml.model", STRING, "llama"),
        ("tokenizer.ggml.tokens", ARRAY, (STRING, [f"<0x{i:02X}>" if i < 9 else f"t{i}é" for i in range(VOCAB)])),
        ("tokenizer.ggml.scores", ARRAY, (F32, [-float(i) for i in range(VOCAB)])),
        ("tokenizer.ggml.token_type", ARRAY, (I32, [6 if i < 9 else 1 for i in range(VOCAB)])),
        ("tokenizer.ggml.add_bos_token", BOOL, 1),
    ):  # fmt: skip
        writer.key(name, code, value)
    for name, values in hf_weights(a, tied).items():
        *layer, last = name.split(".")
        if a == "llama" and last in ("q", "k"):
            values = permuted(values, HEADS if last == "q" else KV_HEADS)
        prefix = f"blk.{layer[1]}." if layer else ""
        writer.tensor(
            prefix + _GGUF_NAMES[last],
            values,
            {"k": "Q4_0", "embedding": "Q8_0", "v": "F16"}.get(last, "F32"),
        )
    return writer


@pytest.fixture(autouse=True)
def _one_torch_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def make_gguf() -> Callable[..., GGUFWriter]:
    """`make_gguf(architecture="llama", tied=True)` -> a writer of the tiny model, to be changed and written."""
    return tiny_writer


@pytest.fixture
def make_weights() -> Callable[..., dict[str, npt.NDArray[np.float32]]]:
    """`make_weights(architecture, tied=True)` -> the tiny model's values under canonical names."""
    return hf_weights
