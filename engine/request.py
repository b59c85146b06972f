"""Requests to the engine and the events it answers with: frozen, validated, plain values.

Everything here crosses the process boundary as msgpack, so there is no behaviour and nothing of torch. One request
is answered by any number of `TokenText` and then exactly one `Finished` or `Failed`; a load by any number of
`LoadProgress` and then exactly one `Loaded` or `Failed`; texts to embed by one `Embedded` or `Failed`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, get_args

from inglenook.engine.errors import InvalidRequestError
from inglenook.engine.kv_cache import KVDtype
from inglenook.engine.parameter_checks import check, check_list, is_real, is_whole
from inglenook.engine.tokenizer.reasoning import ReasoningTags

FinishReason = Literal["stop", "length", "repetition", "cancelled", "error"]
Purpose = Literal["plain", "query", "document"]
"""What texts to embed are: some encoders want words of their own before questions and before passages."""

MAX_STOP_STRINGS = 64
MAX_STOP_LENGTH = 1024
MAX_STOP_TOKENS = 1024
MAX_BIASES = 1024
MAX_LOGPROBS = 20
MAX_CHOICES = 64
MAX_THREADS = 256
MAX_CARDS = 16
MAX_LAYERS = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingParams:
    """How the next token is chosen and when a completion ends.

    `temperature` below 1e-5 is greedy: the arg-max, ties by the lowest id. `top_k` 0, `top_p` 1 and `min_p` 0 are
    off. `seed` None lets the engine draw one, which it reports in `Finished`. `max_tokens` None means "to the end
    of the context"; 0 is legal and only prefills. The penalties are those of `penalties.py`; `logit_bias` maps token
    ids to what is added to their logits. `logprobs` None is off, 0 reports each chosen token's log-probability, k also
    the k best tokens'. `n` completions are made of one prompt, choice c drawing with noise of its own.
    `stop_repetition` ends a completion that has become an endless loop (`repetition.py`), as "repetition"; with
    `ignore_eos` it goes on.

    Raises:
        InvalidRequestError: a value is out of range; the message has its name, the value and the range.
    """

    max_tokens: int | None = None
    temperature: float = 0.7
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    seed: int | None = None
    stop: tuple[str, ...] = ()
    stop_token_ids: tuple[int, ...] = ()
    ignore_eos: bool = False
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    logit_bias: dict[int, float] = field(default_factory=dict)
    logprobs: int | None = None
    n: int = 1
    stop_repetition: bool = False

    @property
    def changes_logits(self) -> bool:
        """Whether any penalty or bias is on."""
        penalties = (self.repetition_penalty - 1.0, self.presence_penalty, self.frequency_penalty)
        return any(penalties) or bool(self.logit_bias)

    def __post_init__(self) -> None:
        m, s, p = self.max_tokens, self.seed, self.logprobs
        check("max_tokens", m, m is None or is_whole(m, 0, 2**31 - 1), "a whole number from 0 to 2^31 - 1")
        check("temperature", self.temperature, is_real(self.temperature, 0, 100), "a number from 0 to 100")
        check(
            "top_k", self.top_k, is_whole(self.top_k, 0, 2**31 - 1), "a whole number from 0 (off) to 2^31 - 1"
        )
        top_p_ok = is_real(self.top_p, 0, 1) and self.top_p > 0
        check("top_p", self.top_p, top_p_ok, "a number above 0 and at most 1")
        min_p_ok = is_real(self.min_p, 0, 1) and self.min_p < 1
        check("min_p", self.min_p, min_p_ok, "a number from 0 to below 1")
        check("seed", s, s is None or is_whole(s, 0, 2**63 - 1), "a whole number from 0 to 2^63 - 1")
        check_list("stop", self.stop, MAX_STOP_STRINGS)
        for text in self.stop:
            check("stop", text, isinstance(text, str) and 0 < len(text) <= MAX_STOP_LENGTH,
                  f"non-empty strings of at most {MAX_STOP_LENGTH} characters")  # fmt: skip
        check_list("stop_token_ids", self.stop_token_ids, MAX_STOP_TOKENS)
        for token in self.stop_token_ids:
            check("stop_token_ids", token, is_whole(token, 0, 2**31 - 1), "token ids from 0 to 2^31 - 1")
        for name in ("ignore_eos", "stop_repetition"):
            check(name, getattr(self, name), isinstance(getattr(self, name), bool), "True or False")
        r = self.repetition_penalty
        check("repetition_penalty", r, is_real(r, 0, 10) and r > 0, "a number above 0 and at most 10")
        for name in ("presence_penalty", "frequency_penalty"):
            value = getattr(self, name)
            check(name, value, is_real(value, -2, 2), "a number from -2 to 2")
        biases = self.logit_bias
        check("logit_bias", biases, isinstance(biases, dict), "token ids with what is added to their logits")
        check("logit_bias", len(biases), len(biases) <= MAX_BIASES, f"at most {MAX_BIASES} tokens")
        for token, bias in biases.items():
            check("logit_bias", token, is_whole(token, 0, 2**31 - 1), "token ids from 0 to 2^31 - 1")
            check("logit_bias", bias, is_real(bias, -100, 100), "numbers from -100 to 100")
        check("logprobs", p, p is None or is_whole(p, 0, MAX_LOGPROBS), f"from 0 to {MAX_LOGPROBS}")
        check("n", self.n, is_whole(self.n, 1, MAX_CHOICES), f"a whole number from 1 to {MAX_CHOICES}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One prompt for the model in a slot: exactly one of chat messages, raw text, or token ids.

    `messages` are dictionaries with the keys "role" ("system", "user" or "assistant") and "content"; the model's
    own chat template renders them. `prompt` is encoded as it is, as ordinary text. `prompt_token_ids` are used as
    they are. `priority` 0 is a person's turn; larger numbers wait for smaller ones (1 titles, 2 indexing). Cached
    prefixes are shared only between requests of the same `cache_salt`; `owner` names whose text this is (a
    conversation, say), so that it can be forgotten. `overflow` says what to do with a conversation that is too long
    (see `context_overflow.py`); messages whose indices are `pinned` are never left out. `reply_token_ids` maps the
    indices of earlier replies to the token ids that they were made of, so that the cache still fits them: text does
    not always encode to the ids it came from. Ids that do not give exactly their message's text are not used.
    `reply_begin` is how the reply to messages begins, made of `reply_begin_ids`: the model goes on from there, and only
    what it adds is returned. `adapter`
    is the absolute path of a LoRA adapter (PEFT's folder) that this request is answered with; "" is none.

    Raises:
        InvalidRequestError: none or several kinds of prompt, or a message without role or content.
    """

    messages: tuple[dict[str, str], ...] | None = None
    prompt: str | None = None
    prompt_token_ids: tuple[int, ...] | None = None
    sampling: SamplingParams = field(default_factory=SamplingParams)
    slot: str = "chat"
    priority: int = 0
    cache_salt: str = ""
    owner: str = ""
    overflow: Literal["refuse", "drop_oldest"] = "refuse"
    pinned: tuple[int, ...] = ()
    reply_token_ids: dict[int, tuple[int, ...]] = field(default_factory=dict)
    reply_begin: str = ""
    reply_begin_ids: tuple[int, ...] = ()
    adapter: str = ""

    def __post_init__(self) -> None:
        check("overflow", self.overflow, self.overflow in ("refuse", "drop_oldest"), "refuse or drop_oldest")
        check("priority", self.priority, is_whole(self.priority, 0, 9), "from 0 to 9")
        check("sampling", self.sampling, isinstance(self.sampling, SamplingParams), "SamplingParams")
        given = [n for n in ("messages", "prompt", "prompt_token_ids") if getattr(self, n) is not None]
        if len(given) != 1:
            raise InvalidRequestError(
                f"a request needs exactly one of messages, prompt, prompt_token_ids; got {', '.join(given) or 'none'}."
            )
        if self.messages is not None and not self.messages:
            raise InvalidRequestError("messages must hold at least one message, got 0.")
        for message in self.messages or ():
            _check_message(message)
        self._check_indices()
        is_begun = isinstance(self.reply_begin, str) and (not self.reply_begin or self.messages is not None)
        check("reply_begin", self.reply_begin, is_begun, "text, and only with messages")
        begun = self.reply_begin_ids
        are_ids = isinstance(begun, tuple | list) and all(is_whole(id_, 0, 2**31 - 1) for id_ in begun)
        check("reply_begin_ids", begun, are_ids, "token ids >= 0")

    def _check_indices(self) -> None:
        """What names messages by their index must name one of them."""
        count = len(self.messages or ())
        check_list("pinned", self.pinned, count)
        check("reply_token_ids", self.reply_token_ids, isinstance(self.reply_token_ids, dict), "a dictionary")
        allowed = f"indices of the {count} messages" if count else "empty without messages"
        for name, indices in (("pinned", self.pinned), ("reply_token_ids", self.reply_token_ids)):
            for index in indices:
                check(name, index, is_whole(index, 0, count - 1), allowed)


def _check_message(message: object) -> None:
    """A message has a role and text, and nothing else: what we do not read must not be lost without a word."""
    check("a message", message, isinstance(message, dict), "a dictionary with role and content")
    assert isinstance(message, dict)
    role, content = message.get("role"), message.get("content")
    if role not in ("system", "user", "assistant") or not isinstance(content, str):
        raise InvalidRequestError(
            f"each message needs a role (system, user or assistant) and text content, got role {role!r} and "
            f"{type(content).__name__} content."
        )
    others = message.keys() - {"role", "content"}
    check("a message", sorted(map(str, others)), not others, "a role and content and nothing else")


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadOptions:
    """How to load a model into a slot.

    `backend` is "auto", "native-cpu", "torch-cpu" or "reference" (see `backend_choice.py`). `context_length` None takes the
    model's own, reduced (with a notice in `Loaded`) when its KV cache would not fit. `num_threads` None takes the
    physical cores, less one when there are more than four. `speculation` guesses tokens by prompt lookup, where the
    back end computes a row alike at every number of rows, so that it changes nothing but the speed. `kv_dtype` None
    is the back end's own; "int8" halves the KV cache of the native one. `chat_template` is used instead of the model's
    own; "" is none. `num_cards` shares the model among cards, `card_layers` puts its last layers on one and the rest on the
    processor; None leaves both to what is free (`placement.py`).
    """

    backend: str = "auto"
    context_length: int | None = None
    num_threads: int | None = None
    max_step_tokens: int | None = None
    speculation: bool = True
    kv_dtype: KVDtype | None = None
    chat_template: str = ""
    num_cards: int | None = None
    card_layers: int | None = None

    def __post_init__(self) -> None:
        limits = {
            "context_length": 2**31 - 1,
            "num_threads": MAX_THREADS,
            "max_step_tokens": 65536,
            "num_cards": MAX_CARDS,
            "card_layers": MAX_LAYERS,
        }
        for name, most in limits.items():
            value = getattr(self, name)
            ok = value is None or is_whole(value, 1, most)
            check(name, value, ok, f"a whole number from 1 to {most}")
        check("backend", self.backend, isinstance(self.backend, str), "a name")
        check("speculation", self.speculation, isinstance(self.speculation, bool), "True or False")
        dtypes = get_args(KVDtype)
        check("kv_dtype", self.kv_dtype, self.kv_dtype in (None, *dtypes), f"None, {', '.join(dtypes)}")


@dataclass(frozen=True, slots=True)
class TokenLogprob:
    """A chosen token's log-probability, and (id, log-probability) of the best tokens at its place."""

    token_id: int
    logprob: float
    top: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True, slots=True)
class TokenText:
    """A piece of the reply: whole code points, and the token ids that completed since the last piece.

    `choice` numbers the completion when `n` is more than 1; `logprobs` has one entry a token id when asked for.
    `made_s` is when the engine made it, by the monotonic clock that all processes of this computer share; 0 unknown.
    """

    text: str
    token_ids: tuple[int, ...]
    choice: int = 0
    logprobs: tuple[TokenLogprob, ...] = ()
    made_s: float = field(default=0.0, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """The end of a reply. Times are in seconds; `ttft_s` is None without a token, `tpot_s` without a second one.

    `finish_reasons` has one entry a choice, `finish_reason` is the first's; `completion_tokens` counts all choices'.
    `accepted_tokens` of them came from `drafted_tokens` guesses (speculation). `notices` are sentences for the user
    about the prompt, such as a system message folded into the question.
    """

    finish_reason: FinishReason
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    ttft_s: float | None
    tpot_s: float | None
    seed: int
    finish_reasons: tuple[FinishReason, ...] = ()
    drafted_tokens: int = 0
    accepted_tokens: int = 0
    left_out: tuple[int, ...] = ()
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Failed:
    """The end of a request or load that could not be completed: an error class of `errors` and its sentence."""

    kind: str
    message: str


@dataclass(frozen=True, slots=True)
class LoadProgress:
    """How far a load is: `stage` in plain words, `done` of `total` bytes of weights."""

    stage: str
    done: int
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A model stands in its slot. Sizes in bytes; `notices` are sentences for the user (a shortened context, say).

    `kv_bytes` is the whole KV cache, which takes memory as it fills; `need_bytes` what the engine takes in all once
    one context is full. `reasoning` has the tags between which the model writes its reasoning, for who folds it;
    None: it writes none.
    """

    slot: str
    name: str
    architecture: str
    backend: str
    backend_reason: str
    context_length: int
    weight_bytes: int
    kv_bytes: int
    load_s: float
    need_bytes: int = 0
    notices: tuple[str, ...] = ()
    reasoning: ReasoningTags | None = None


@dataclass(frozen=True, slots=True)
class Unloaded:
    """The slot is empty and its memory is free."""

    slot: str


@dataclass(frozen=True, slots=True)
class Forgotten:
    """An owner's text is gone from the engine: `num_requests` were cancelled, `num_blocks` dropped from the cache."""

    num_requests: int
    num_blocks: int


@dataclass(frozen=True, slots=True)
class Embedded:
    """Vectors of the texts of one request, each of length 1.

    vectors: float32 [number of texts, dimension], row-major, little-endian bytes (msgpack carries them as they are).
    cut: indices of texts that were longer than the encoder reads; their vectors cover the beginning only.
    """

    vectors: bytes
    dimension: int
    cut: tuple[int, ...]


Event = TokenText | Finished | Failed | LoadProgress | Loaded | Unloaded | Forgotten | Embedded
TERMINAL_EVENTS = (Finished, Failed, Loaded, Unloaded, Forgotten, Embedded)
