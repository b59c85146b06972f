"""The model doctor's look at prompts: tokenizer round trip, BOS, stop tokens, and what the chat template makes."""

from __future__ import annotations

from collections.abc import Iterator

from inglenook.engine.errors import EngineError, TemplateError
from inglenook.engine.model_doctor.report import Finding
from inglenook.engine.model_doctor.templates import format_findings
from inglenook.engine.models.spec import ModelSpec
from inglenook.engine.tokenizer.tokenizer import EncodedPrompt, Tokenizer

_TEXT = "Grüße, naïve café — 17:42 «Öl» море 海の日 한국어 नमस्ते 👩‍🚀🏽 x = {'a': [1, 2]}\n\ttab  two spaces"
_CHAT = [
    {"role": "user", "content": "Who keeps the lamp?"},
    {"role": "assistant", "content": "The keeper keeps it."},
    {"role": "user", "content": "And by day?"},
]


def prompt_findings(tokenizer: Tokenizer, spec: ModelSpec) -> list[Finding]:
    """Findings on a model's tokenizer and chat template."""
    return [*_vocabulary(tokenizer, spec), *_template(tokenizer)]


def _vocabulary(tokenizer: Tokenizer, spec: ModelSpec) -> Iterator[Finding]:
    if tokenizer.vocab_size > spec.vocab_size:
        yield Finding(
            "tokenizer",
            "red",
            f"The tokenizer has {tokenizer.vocab_size:,} tokens, the model {spec.vocab_size:,}.",
        )
        return
    try:
        prompt = tokenizer.encode_text(_TEXT)
    except EngineError as error:
        yield Finding("tokenizer", "red", str(error))
        return
    yield _round_trip(tokenizer, prompt)
    if not tokenizer.stop_token_ids:
        yield Finding(
            "stops", "red", "No token is named that ends a reply, so none would ever end by itself."
        )
    else:
        yield Finding("stops", "green", f"{len(tokenizer.stop_token_ids)} tokens end a reply.")


def _round_trip(tokenizer: Tokenizer, prompt: EncodedPrompt) -> Finding:
    ids = [i for i in prompt.token_ids if not tokenizer.is_control(i)]
    detokenizer = tokenizer.detokenizer()
    text = "".join(detokenizer.feed(i) for i in ids) + detokenizer.flush()
    if text == _TEXT:
        return Finding(
            "tokenizer", "green", "Text of several scripts comes back from its tokens byte for byte."
        )
    kept = sum(a == b for a, b in zip(text, _TEXT, strict=False)) / len(_TEXT)
    if prompt.notices:
        return Finding("tokenizer", "amber", " ".join(prompt.notices))
    if text.split() == _TEXT.split() or kept > 0.9:
        return Finding(
            "tokenizer", "amber", "Text comes back from its tokens with its white space or form changed."
        )
    return Finding("tokenizer", "red", "Text does not come back from its tokens.")


def _template(tokenizer: Tokenizer) -> Iterator[Finding]:
    try:
        prompt = tokenizer.encode_chat(_CHAT)
    except TemplateError as error:
        yield Finding("template", "amber" if "no chat template" in str(error) else "red", str(error))
        yield _bos(tokenizer, tokenizer.encode_text(_CHAT[0]["content"]).token_ids)
        return
    missing = [m["role"] for m in _CHAT if m["content"] not in prompt.text]
    if missing:
        yield Finding("template", "red", f"The chat template leaves out what the {missing[0]} said.")
    elif not _ends_replies(tokenizer, prompt):
        yield Finding(
            "template",
            "red",
            "The chat template puts no token that ends a reply behind the replies, so the model would go on and on.",
        )
    else:
        note = f" {' '.join(prompt.notices)}" if prompt.notices else ""
        yield Finding("template", "green", f"The chat template takes a chat and ends its replies.{note}")
        yield from format_findings(prompt.text, _CHAT[2]["content"], tokenizer.added_tokens)
    yield _bos(tokenizer, prompt.token_ids)


def _ends_replies(tokenizer: Tokenizer, prompt: EncodedPrompt) -> bool:
    """Whether a stop token stands between the first reply and the question after it."""
    reply, question = _CHAT[1]["content"], _CHAT[2]["content"]
    start = prompt.text.index(reply) + len(reply)
    between = prompt.text[start : prompt.text.index(question, start)]
    stops = tokenizer.stop_token_ids
    return any(token in stops for token in tokenizer.control_tokens_in(between))


def _bos(tokenizer: Tokenizer, token_ids: tuple[int, ...]) -> Finding:
    bos = tokenizer.bos_id
    count = 0
    while bos is not None and token_ids[count : count + 1] == (bos,):
        count += 1
    if count > 1:
        return Finding("bos", "red", f"A prompt begins with {count} BOS tokens instead of one.")
    if tokenizer.wants_bos and count == 0:
        return Finding("bos", "red", "A prompt begins without the BOS token that the model wants.")
    return Finding(
        "bos", "green", f"A prompt begins with {'one' if count else 'no'} BOS token, as it should."
    )
