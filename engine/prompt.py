"""`Prompt`: a request's token ids, with what happened on the way to them; made on the tokenizing thread."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from inglenook.engine.context_overflow import fit_conversation, reply_reserve
from inglenook.engine.models.lora import LoraAdapter
from inglenook.engine.request import Request
from inglenook.engine.tokenizer.tokenizer import EncodedPrompt, Tokenizer


@dataclass(frozen=True, slots=True)
class Prompt:
    """Token ids, sentences for the user, the indices of messages that were left out, and the adapter to wear."""

    token_ids: tuple[int, ...]
    notices: tuple[str, ...] = ()
    left_out: tuple[int, ...] = ()
    adapter: LoraAdapter | None = None


def make_prompt(request: Request, tokenizer: Tokenizer, context_length: int) -> Prompt:
    """Encode a request's messages, text or ids.

    Raises:
        TemplateError: the model's template is missing, broken or refuses the messages.
        InvalidRequestError: the text cannot be encoded.
    """
    if request.prompt_token_ids is not None:
        return Prompt(request.prompt_token_ids)
    if request.messages is None:
        encoded = tokenizer.encode_text(request.prompt or "")
        return Prompt(encoded.token_ids, encoded.notices)

    messages, replies = request.messages, request.reply_token_ids

    def encode(kept: Sequence[int]) -> EncodedPrompt:
        ids = {new: replies[old] for new, old in enumerate(kept) if old in replies}
        return tokenizer.encode_chat(
            [messages[index] for index in kept],
            ids,
            begun=request.reply_begin,
            begun_token_ids=request.reply_begin_ids,
        )

    if request.overflow == "refuse":
        encoded = encode(range(len(messages)))
        return Prompt(encoded.token_ids, encoded.notices)
    limit = context_length - reply_reserve(request.sampling.max_tokens, context_length)
    encoded, left_out = fit_conversation(messages, request.pinned, encode, limit)
    return Prompt(encoded.token_ids, encoded.notices, left_out)
