"""A tiny but whole chat model as a GGUF file: two llama layers of random weights, byte-level vocabulary, template.

Written by the `gguf` package, so our reader is not tested against our own writer. Random weights answer nonsense, but
deterministically, which is all that tests of the engine's behaviour need.
"""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np

TEMPLATE = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
CONTEXT = 512
HIDDEN, HEADS, KV_HEADS, LAYERS, FFN = 64, 4, 2, 2, 96


def _byte_letters() -> list[str]:
    """GPT-2's printable letter for each byte."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letters, extra = {b: chr(b) for b in printable}, 0
    for byte in range(256):
        if byte not in letters:
            letters[byte] = chr(256 + extra)
            extra += 1
    return [letters[byte] for byte in range(256)]


def write_tiny_gguf(
    path: Path, *, seed: int = 0, context: int = CONTEXT, architecture: str = "llama", quantize: str = ""
) -> Path:
    """Write the model; the same seed gives the same file. `quantize` names a format, Q8_0 say, of all matrices."""
    rng = np.random.default_rng(seed)
    writer = gguf.GGUFWriter(str(path), architecture)
    writer.add_name("tiny")
    writer.add_context_length(context)
    writer.add_embedding_length(HIDDEN)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(FFN)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(10000.0)
    writer.add_rope_dimension_count(HIDDEN // HEADS)
    tokens = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", *_byte_letters(), "he"]
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(tokens)
    writer.add_token_types([gguf.TokenType.CONTROL] * 3 + [gguf.TokenType.NORMAL] * 257)
    writer.add_token_merges(["h e"])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_add_bos_token(False)
    writer.add_chat_template(TEMPLATE)

    def matrix(name: str, rows: int, columns: int, scale: float) -> None:
        values = (rng.standard_normal((rows, columns)) * scale).astype(np.float32)
        if quantize:
            kind = gguf.GGMLQuantizationType[quantize]
            writer.add_tensor(name, gguf.quants.quantize(values, kind), raw_dtype=kind)
        else:
            writer.add_tensor(name, values)

    head = HIDDEN // HEADS
    matrix("token_embd.weight", len(tokens), HIDDEN, 1.0)
    for layer in range(LAYERS):
        p = f"blk.{layer}."
        writer.add_tensor(p + "attn_norm.weight", np.ones(HIDDEN, np.float32))
        matrix(p + "attn_q.weight", HEADS * head, HIDDEN, 0.3)
        matrix(p + "attn_k.weight", KV_HEADS * head, HIDDEN, 0.3)
        matrix(p + "attn_v.weight", KV_HEADS * head, HIDDEN, 0.3)
        matrix(p + "attn_output.weight", HIDDEN, HEADS * head, 0.3)
        writer.add_tensor(p + "ffn_norm.weight", np.ones(HIDDEN, np.float32))
        matrix(p + "ffn_gate.weight", FFN, HIDDEN, 0.3)
        matrix(p + "ffn_up.weight", FFN, HIDDEN, 0.3)
        matrix(p + "ffn_down.weight", HIDDEN, FFN, 0.3)
    writer.add_tensor("output_norm.weight", np.ones(HIDDEN, np.float32))
    matrix("output.weight", len(tokens), HIDDEN, 0.3)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
