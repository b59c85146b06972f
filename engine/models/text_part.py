"""`text_part`: the language model inside a folder whose model also looks at pictures (Gemma 3, Mistral Small 3.1).

Such a folder has the language model's settings in `text_config` and its tensors under a prefix. That part is a whole
model of a known architecture and is run as one; the tensors that look at pictures stay unread.
"""

from __future__ import annotations

import re
from typing import Any

from inglenook.engine.weights.metadata import Metadata, describe

# outer model_type -> (the text part's model_type, what its settings leave out when they are the family's own)
_FAMILIES: dict[str, tuple[str, dict[str, Any]]] = {
    "gemma3": (
        "gemma3_text",
        {
            "vocab_size": 262_208, "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256,
            "max_position_embeddings": 131_072, "sliding_window": 4096, "tie_word_embeddings": True,
        },
    ),
    "mistral3": ("mistral", {}),
}  # fmt: skip
_PREFIX = re.compile(r"(?:language_model\.(?=lm_head\.)|language_model\.model\.|model\.language_model\.)")
_PICTURES = re.compile(r"(?:model\.)?(?:vision_tower|vision_model|multi_modal_projector)\.")


def text_part(config: Metadata) -> Metadata:
    """The settings of the language model in a config.json: its `text_config` in the known families, else itself.

    Raises:
        ModelFileError: the text part is missing or of another architecture than its family's.
    """
    family = _FAMILIES.get(config.text("model_type", default=""))
    if family is None:
        return config
    model_type, defaults = family
    section = config.section("text_config")
    if section is None:
        raise config.error("text_config", "is missing")
    found = section.text("model_type", default=model_type)
    if found != model_type:
        raise section.error("model_type", f"is {describe(found)}; in this family it must be {model_type!r}")
    shared = {"tie_word_embeddings": config["tie_word_embeddings"]} if "tie_word_embeddings" in config else {}
    values = {**defaults, **shared, **{key: section[key] for key in section}, "model_type": model_type}
    return Metadata(values, f"{config.source}, text_config")


def name_in_text_part(name: str) -> str | None:
    """The name that a tensor of such a folder has in its language model alone; None for one that looks at pictures."""
    if _PICTURES.match(name):
        return None
    match = _PREFIX.match(name)
    if match is None:
        return name
    return (
        name[match.end() :] if name.startswith("language_model.lm_head.") else f"model.{name[match.end() :]}"
    )
