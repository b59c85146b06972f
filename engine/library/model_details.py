"""What a person may set for one model, read from its files without loading it: its longest context and its template.

Torch-free, and blocking for a second or so: a vocabulary is read, and a chat template rendered in its own process.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from inglenook.engine.errors import TEMPLATE_ADVICE, EngineError, TemplateError
from inglenook.engine.kv_cache import BLOCK_SIZE, KVDtype, kv_groups
from inglenook.engine.tokenizer.tokenizer import Tokenizer
from inglenook.engine.weights.loader import open_model

_QUESTION, _REPLY, _NEXT = "What is a hedge?", "A row of shrubs.", "And a fence?"


@dataclass(frozen=True, slots=True)
class ModelDetails:
    """The longest context in tokens, the bytes of keys and values of one token by their type, and the chat template."""

    context_length: int
    kv_bytes_per_token: dict[KVDtype, int]
    chat_template: str


@dataclass(frozen=True, slots=True)
class TemplateCheck:
    """What came of trying a chat template on a model: `problem` in a sentence, or "" and the `sample` that it renders.

    `remark` is a sentence about what works but should be looked at.
    """

    problem: str = ""
    remark: str = ""
    sample: str = ""
    num_tokens: int = 0


def read_details(path: Path) -> ModelDetails:
    """Read the details of the chat model at `path`.

    Raises:
        ModelFileError: it is not a sound model.
    """
    kinds: tuple[KVDtype, ...] = ("float32", "float16", "bfloat16", "int8")
    with open_model(path) as file:
        sizes = {
            kind: sum(group.block_bytes for group in kv_groups(file.spec, kind)) // BLOCK_SIZE
            for kind in kinds
        }
        with Tokenizer.from_model_file(file) as tokenizer:
            return ModelDetails(file.spec.context_length, sizes, tokenizer.template)


def check_template(path: Path, template: str) -> TemplateCheck:
    """Try a chat template on the vocabulary of the model at `path` with a short chat, as a load would use it."""
    chat = [
        {"role": "user", "content": _QUESTION},
        {"role": "assistant", "content": _REPLY},
        {"role": "user", "content": _NEXT},
    ]
    try:
        with open_model(path) as file, Tokenizer.from_model_file(file, chat_template=template) as tokenizer:
            prompt = tokenizer.encode_chat(chat)
            is_bare = not tokenizer.control_tokens_in(prompt.text)
            missing = [text for text in (_QUESTION, _REPLY, _NEXT) if text not in prompt.text]
            if missing:
                what = "question" if missing[0] != _REPLY else "earlier reply"
                return TemplateCheck(
                    f"This template leaves the {what} “{missing[0]}” out, so the model would not see it.",
                    sample=prompt.text,
                )
            remark = " ".join(prompt.notices)
            try:
                tokenizer.encode_chat([{"role": "system", "content": "Be brief."}, *chat])
            except TemplateError as error:
                remark = f"{remark} Instructions will not work: {error}".strip()
            if is_bare:
                remark = (
                    f"{remark} It writes none of this model's control tokens; replies may not end.".strip()
                )
            return TemplateCheck("", remark, prompt.text, len(prompt.token_ids))
    except TemplateError as error:
        # The sentence is made for who asks a question; here there is something better to do.
        what = str(error).removesuffix(TEMPLATE_ADVICE).strip().rstrip(".")
        what = what.replace("This model's chat template", "This chat template", 1)
        return TemplateCheck(f"{what}. Correct it, or take the model's own.")
    except EngineError as error:
        return TemplateCheck(str(error))
