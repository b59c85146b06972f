"""Tiny random encoders as sentence-transformers folders, and an encoder's folder written as a GGUF file."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import gguf
import tokenizers
import torch
from tokenizers import models, normalizers, pre_tokenizers, processors, trainers

_WORDS = ["the", "lamp", "burns", "Öl", "and", "17:42", "море", "海", "ship,log;", "keeper", "wrote", "weather", "3.14", "naïve", "—", "end.", "LIGHTHOUSE", "don't", "e-mail", "ﬁne", "ｆｕｌｌ", "été", "İstanbul", "ß", "한국어", "भाषा", "👩\u200d🚀", "[SEP]", "</s>", "<s>", "[CLS]", "\t", "x_y", "#tag", "@me", "50%", "1,000", "...", "«quote»", "a/b\\c", "''"]  # fmt: skip


def sentences(count: int, seed: int = 0) -> list[str]:
    """Texts of 1 to 90 words of several scripts."""
    rng = random.Random(seed)
    return [" ".join(rng.choices(_WORDS, k=rng.randint(1, 90))) for _ in range(count)]


def make_encoder(
    folder: Path, model_type: str, *, pooling: str = "mean_tokens", tokenizer: Path | None = None
) -> Any:
    """Save a random encoder in `folder` and return the `transformers` model (which has no types)."""
    import transformers

    folder.mkdir(exist_ok=True)
    if tokenizer is None:
        _unigram().save(str(folder / "tokenizer.json"))
    else:
        (folder / "tokenizer.json").write_bytes(tokenizer.read_bytes())
    size = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json")).get_vocab_size()
    torch.manual_seed(5)
    config = transformers.AutoConfig.for_model(
        model_type, vocab_size=size, hidden_size=48, num_hidden_layers=3, num_attention_heads=4,
        intermediate_size=96, max_position_embeddings=130, type_vocab_size=1 if "roberta" in model_type else 2,
        pad_token_id=0 if model_type == "bert" else 1,
    )  # fmt: skip
    model = transformers.AutoModel.from_config(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    model.save_pretrained(folder)
    (folder / "1_Pooling").mkdir(exist_ok=True)
    modes = {f"pooling_mode_{m}": m == pooling for m in ("cls_token", "mean_tokens", "max_tokens")}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(modes))
    return model


def _unigram() -> tokenizers.Tokenizer:
    """A Unigram vocabulary laid out as XLM-RoBERTa's, trained on the sentences."""
    tokenizer = tokenizers.Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.Sequence([normalizers.Replace(tokenizers.Regex(" {2,}"), " ")])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]
    )
    trainer = trainers.UnigramTrainer(
        vocab_size=300,
        special_tokens=["<s>", "<pad>", "</s>", "<unk>"],
        unk_token="<unk>",
        show_progress=False,
    )
    tokenizer.train_from_iterator(sentences(300, seed=9), trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    return tokenizer


def write_encoder_gguf(folder: Path, path: Path) -> Path:
    """Write an encoder's folder as a GGUF file by the rules of the format's converter."""
    from safetensors.numpy import load_file

    config = json.loads((folder / "config.json").read_text())
    first = 0 if config["model_type"] == "bert" else config["pad_token_id"] + 1
    writer = gguf.GGUFWriter(str(path), "bert")
    writer.add_context_length(config["max_position_embeddings"] - first)
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_layer_norm_eps(config["layer_norm_eps"])
    writer.add_causal_attention(False)
    pooling = json.loads((folder / "1_Pooling" / "config.json").read_text())
    is_first = pooling["pooling_mode_cls_token"]
    writer.add_pooling_type(gguf.PoolingType.CLS if is_first else gguf.PoolingType.MEAN)
    _add_vocabulary(writer, json.loads((folder / "tokenizer.json").read_text())["model"])
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.BERT, config["num_hidden_layers"])
    for name, values in load_file(folder / "model.safetensors").items():
        if name.startswith("pooler") or name.endswith("position_ids"):
            continue
        stem, suffix = name.rsplit(".", 1)
        if stem == "embeddings.position_embeddings":
            values = values[first:]
        writer.add_tensor(f"{names.get_name(stem)}.{suffix}", values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _add_vocabulary(writer: Any, model: dict[str, Any]) -> None:
    if model["type"] == "Unigram":
        writer.add_tokenizer_model("t5")
        writer.add_token_list([token for token, _ in model["vocab"]])
        writer.add_token_scores([score for _, score in model["vocab"]])
        writer.add_token_types([3, 3, 3, 2, *[1] * (len(model["vocab"]) - 4)])
        writer.add_bos_token_id(0)
        writer.add_eos_token_id(2)
        writer.add_unk_token_id(3)
        writer.add_remove_extra_whitespaces(True)
        return
    tokens = sorted(model["vocab"], key=model["vocab"].__getitem__)
    special = [t.startswith("[") and t.endswith("]") and len(t) > 2 for t in tokens]
    writer.add_tokenizer_model("bert")
    writer.add_token_list(
        [t if s else t[2:] if t.startswith("##") else f"▁{t}" for t, s in zip(tokens, special, strict=True)]
    )
    writer.add_token_types([3 if s else 1 for s in special])
