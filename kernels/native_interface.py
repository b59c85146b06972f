"""The structs of kernels/cpu/inglenook.h in ctypes, field by field, and the ids that go in them.

`INTERFACE_VERSION` changes with any of them; a library that answers another number is not used.
"""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_char_p, c_double, c_int32, c_int64, c_uint64, c_void_p

INTERFACE_VERSION = 5

_FORMATS = (
    "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q4_K", "Q5_K", "Q6_K", "QINT4_G64", "QINT4_G128", "QINT8_G64",
    "QINT8_G128", "QFLOAT8_G32", "QFLOAT8_G64", "QFLOAT8_G128", "F16", "BF16",
)  # fmt: skip
FORMAT_IDS = {name: i for i, name in enumerate(_FORMATS)}
QK_NORM_IDS = {"none": 0, "head": 1, "whole": 2}
ACTIVATION_IDS = {"silu": 0, "gelu_tanh": 1}
KV_DTYPE_IDS = {"float32": 0, "float16": 1, "bfloat16": 2, "int8": 3}

STEP_DONE, STEP_CANCELLED, STEP_BAD_BATCH, STEP_NO_MEMORY = 0, 1, -1, -2


class Matrix(ctypes.Structure):
    """A packed matrix."""

    _fields_ = [("data", c_void_p), ("rows", c_int64), ("columns", c_int64), ("format", c_int64)]


LAYER_VECTORS = (
    "attention_norm",
    "q_bias",
    "k_bias",
    "v_bias",
    "q_norm",
    "k_norm",
    "o_bias",
    "attention_post_norm",
    "mlp_norm",
    "gate_bias",
    "up_bias",
    "down_bias",
    "mlp_post_norm",
)
LAYER_MATRICES = ("q", "k", "v", "o", "gate", "up", "down")


class Layer(ctypes.Structure):
    """One decoder layer; vectors may be null, and the last two are for int8 caches. `rope` is an index of the model's, -1 for none."""

    _fields_ = [
        *((name, c_void_p) for name in LAYER_VECTORS),
        *((name, Matrix) for name in LAYER_MATRICES),
        ("kv_group", c_int64),
        ("kv_index", c_int64),
        ("rope", c_int64),
        ("key_offset", c_void_p),
        ("key_unit", c_void_p),
    ]


class Rope(ctypes.Structure):
    """A rotary embedding."""

    _fields_ = [("inverse_frequencies", c_void_p), ("size", c_int64), ("factor", c_double)]


class Model(ctypes.Structure):
    """A whole decoder."""

    _fields_ = [
        *(
            (name, c_int64)
            for name in (
                "vocab_size",
                "hidden_size",
                "num_layers",
                "num_heads",
                "num_kv_heads",
                "head_size",
                "intermediate_size",
                "num_kv_groups",
                "qk_norm",
                "activation",
            )
        ),
        *(
            (name, c_double)
            for name in (
                "norm_eps",
                "attention_scale",
                "attention_softcap",
                "embedding_scale",
                "residual_scale",
                "logit_scale",
                "logit_softcap",
            )
        ),
        ("ropes", Rope * 2),
        ("output_norm", c_void_p),
        ("embedding", Matrix),
        ("head", Matrix),
        ("layers", POINTER(Layer)),
    ]


class KvGroup(ctypes.Structure):
    """KV tensors of one group and a step's tables for it."""

    _fields_ = [
        *((name, c_void_p) for name in ("k", "v", "k_scale", "v_scale", "block_tables", "slots")),
        *((name, c_int64) for name in ("num_blocks", "num_layers", "max_blocks", "window", "dtype")),
    ]


class Batch(ctypes.Structure):
    """A step's flat arrays."""

    _fields_ = [
        *(
            (name, c_void_p)
            for name in ("token_ids", "positions", "query_starts", "context_lengths", "logits_rows")
        ),
        *((name, c_int64) for name in ("num_tokens", "num_sequences", "num_logits")),
    ]


# name: (result, arguments)
FUNCTIONS: dict[str, tuple[object, list[object]]] = {
    "inglenook_interface_version": (c_int32, []),
    "inglenook_isa": (c_char_p, []),
    "inglenook_is_supported": (c_int32, []),
    "inglenook_create": (c_void_p, [POINTER(Model), c_int32]),
    "inglenook_destroy": (None, [c_void_p]),
    "inglenook_wake": (None, [c_void_p]),
    "inglenook_step": (c_int32, [c_void_p, POINTER(Batch), POINTER(KvGroup), c_void_p, c_void_p]),
    "inglenook_packed_bytes": (c_int64, [c_int32, c_int64, c_int64]),
    "inglenook_pack": (
        None,
        [c_int32, c_void_p, c_int64, c_int64, c_int64, c_void_p, c_int64, c_int64],
    ),
    "inglenook_dequantize_row": (None, [POINTER(Matrix), c_int64, c_void_p]),
    "inglenook_checksum": (c_uint64, [c_void_p, c_int64]),
    "inglenook_record_bytes": (c_int64, [c_int64]),
    "inglenook_quantize": (None, [c_void_p, c_int64, c_int64, c_void_p]),
    "inglenook_matmul": (None, [c_void_p, POINTER(Matrix), c_void_p, c_int64, c_void_p]),
    "inglenook_exp": (None, [c_void_p, c_int64, c_void_p]),
    "inglenook_read_seconds": (c_double, [c_void_p, c_void_p, c_int64]),
}
