"""`Tokenizer`: a model's way from text to token ids and back.

A prompt is encoded in pieces: added tokens where the template put them, and the text between by an encoder that
knows none. So the ids equal those of the model's original tokenizer, except that text which people typed or
documents hold is always ordinary text, whatever it looks like.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from inglenook.engine.errors import EngineError, InvalidRequestError, TemplateError
from inglenook.engine.tokenizer.added_tokens import shield
from inglenook.engine.tokenizer.chat_template import ChatTemplate, RenderedChat, well_formed
from inglenook.engine.tokenizer.detokenizer import Detokenizer
from inglenook.engine.tokenizer.folder_vocabulary import vocabulary_from_folder
from inglenook.engine.tokenizer.gguf_vocabulary import vocabulary_from_gguf
from inglenook.engine.tokenizer.reasoning import ReasoningTags, find_reasoning, opens_reasoning
from inglenook.engine.tokenizer.template_process import TemplateProcess
from inglenook.engine.tokenizer.vocabulary import Vocabulary, rust_guard

if TYPE_CHECKING:
    from inglenook.engine.weights.loader import ModelFile


@dataclass(frozen=True, slots=True)
class EncodedPrompt:
    """A prompt as the model reads it: token ids, the text they came from, and notices for the user."""

    token_ids: tuple[int, ...]
    text: str
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _KnownIds:
    """A part of a rendered text with the ids it was made of."""

    start: int
    end: int
    token_ids: tuple[int, ...]


class Tokenizer:
    """The tokenizer of one model. May be used from several threads; renders wait for each other."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._templates = TemplateProcess()
        source = "".join(vocabulary.templates.values())
        added = {token.content: token for token in vocabulary.added.tokens}
        self._tags = find_reasoning(source, added)
        # Control tokens have no text; but those around reasoning must be seen by who wants to fold it.
        tags = (self._tags.begin, self._tags.end) if self._tags is not None else ()
        self._tag_bytes = {added[tag].id: tag.encode() for tag in tags if tag in added and added[tag].special}

    @classmethod
    def from_gguf(cls, metadata: Mapping[str, Any]) -> Tokenizer:
        """The tokenizer in a GGUF's metadata (`Any`: see `weights/metadata.py`).

        Raises:
            UnsupportedModelError, ModelFileError: see `gguf_vocabulary`.
        """
        return cls(vocabulary_from_gguf(metadata))

    @classmethod
    def from_folder(cls, path: Path) -> Tokenizer:
        """The tokenizer of a Hugging Face model folder.

        Raises:
            UnsupportedModelError, ModelFileError: see `folder_vocabulary`.
        """
        return cls(vocabulary_from_folder(path))

    @classmethod
    def from_model_file(cls, file: ModelFile, *, chat_template: str = "") -> Tokenizer:
        """The tokenizer of an open model: from its header, or from the files beside its weights.

        `chat_template`, unless "", is used instead of the model's own.

        Raises:
            UnsupportedModelError, ModelFileError: see `from_gguf` and `from_folder`.
        """
        is_gguf = file.kind == "gguf"
        vocabulary = vocabulary_from_gguf(file.metadata) if is_gguf else vocabulary_from_folder(file.path)
        if chat_template:
            vocabulary = replace(vocabulary, templates={"default": chat_template})
        return cls(vocabulary)

    @property
    def template(self) -> str:
        """The source of the chat template; "" where there is none, or several without a usual one."""
        templates = self._vocabulary.templates
        return templates.get("default", next(iter(templates.values())) if len(templates) == 1 else "")

    @property
    def vocab_size(self) -> int:
        """One more than the highest token id that stands for something."""
        return len(self._vocabulary.pieces)

    @property
    def stop_token_ids(self) -> frozenset[int]:
        """Every token that any source names as the end of a reply or turn."""
        return self._vocabulary.stop_ids

    @property
    def bos_id(self) -> int | None:
        """The token that begins a text, if there is one."""
        return self._vocabulary.bos_id

    @property
    def wants_bos(self) -> bool:
        """Whether every prompt must begin with BOS."""
        return self._vocabulary.add_bos and self._vocabulary.bos_id is not None

    @functools.cached_property
    def reasoning(self) -> ReasoningTags | None:
        """The tags between which this model writes its reasoning, or None; may render a chat to find out."""
        tags = self._tags
        if tags is None:
            return None
        try:
            prompt = self.encode_chat([{"role": "user", "content": "x"}])
        except EngineError:
            return tags
        return replace(tags, is_open=opens_reasoning(tags, prompt.text))

    @property
    def added_tokens(self) -> frozenset[str]:
        """The texts of all tokens that are matched whole where a template writes them."""
        return frozenset(token.content for token in self._vocabulary.added.tokens)

    def control_tokens_in(self, text: str) -> list[int]:
        """The ids of the added tokens in a text that is all a template's."""
        return self._added_ids(text)

    def is_control(self, token_id: int) -> bool:
        """Whether a token is a control token, which has no text."""
        return token_id in self._vocabulary.control_ids

    def token_bytes(self, token_id: int) -> bytes:
        """The bytes a token adds to a text; none for control tokens and for ids that stand for nothing.

        The tags around reasoning have theirs, even where they are control tokens.
        """
        if token_id in self._tag_bytes:
            return self._tag_bytes[token_id]
        pieces = self._vocabulary.pieces
        return pieces[token_id] if 0 <= token_id < len(pieces) else b""

    def detokenizer(self, prompt_token_ids: Sequence[int] = (), *, is_chat: bool = False) -> Detokenizer:
        """A detokenizer for what follows a prompt.

        The space that a SentencePiece vocabulary puts before a first word is dropped where the reply is a text of
        its own: in a chat, after nothing, or after a control token. A raw prompt's continuation keeps it.
        """
        opens = is_chat or not prompt_token_ids or self.is_control(prompt_token_ids[-1])
        return Detokenizer(self.token_bytes, strip_space=self._vocabulary.strips_space and opens)

    def encode_text(self, text: str) -> EncodedPrompt:
        """Encode a raw prompt, all of it as ordinary text, with BOS in front if the vocabulary wants it.

        Raises:
            ModelFileError: the model's tokenizer cannot encode it.
        """
        text = well_formed(text)
        return EncodedPrompt(self._with_bos(self._encode(text, shield(text))), text, self._left_out(text))

    def encode_chat(
        self,
        messages: Sequence[Mapping[str, str]],
        reply_token_ids: Mapping[int, Sequence[int]] | None = None,
        *,
        begun: str = "",
        begun_token_ids: Sequence[int] = (),
    ) -> EncodedPrompt:
        """Render messages ("role", "content") with the model's chat template, up to the reply's start, and encode.

        `reply_token_ids` has, for messages that this model wrote, the ids they were made of; they are used where they
        give exactly the message's text and the template leaves that text as it is. `begun` is how the reply begins, to
        be gone on with; its ids are used where they give exactly that text.

        Raises:
            TemplateError: there is no template, or it cannot be used; the message says what to do.
            ModelFileError: the model's tokenizer cannot encode the text.
        """
        if not messages:
            raise InvalidRequestError("messages must hold at least one message, got 0.")
        rendered = self._chat_template.render([dict(message) for message in messages])
        known = self._known_ids(rendered, messages, reply_token_ids or {})
        begun = well_formed(begun)
        text, shielded = rendered.text + begun, rendered.shielded + shield(begun)
        if begun and self._decoded(begun_token_ids) == begun:
            known.append(_KnownIds(len(rendered.text), len(text), tuple(begun_token_ids)))
        token_ids = self._encode(text, shielded, known)
        return EncodedPrompt(self._with_bos(token_ids), text, (*rendered.notices, *self._left_out(text)))

    def close(self) -> None:
        """End the worker that renders templates. Closing twice is fine."""
        self._templates.close()

    def __enter__(self) -> Tokenizer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _left_out(self, text: str) -> tuple[str, ...]:
        """A notice when the vocabulary has no token for some of a text."""
        missing = self._vocabulary.missing_bytes
        data = text.encode() if missing else b""
        count = len(data) - len(data.translate(None, missing))
        if not count:
            return ()
        return (f"This model has no token for {count:,} rare bytes of the prompt; they were left out.",)

    @functools.cached_property
    def _chat_template(self) -> ChatTemplate:
        vocabulary = self._vocabulary
        templates = vocabulary.templates
        source = templates.get("default")
        if source is None and len(templates) == 1:
            (source,) = templates.values()
        if source is None:
            names = f" named 'default' among {', '.join(sorted(templates))}" if templates else ""
            raise TemplateError(
                f"This model has no chat template{names}, so it cannot take a chat. "
                "Give it one on the models page, or use a model tuned for chat."
            )
        return ChatTemplate(
            source, vocabulary.variables, vocabulary.added.tokens, self._added_ids, self._templates
        )

    def _added_ids(self, text: str) -> list[int]:
        return [p.token_id for p in self._vocabulary.added.split(text, text) if p.token_id is not None]

    def _known_ids(
        self,
        rendered: RenderedChat,
        messages: Sequence[Mapping[str, str]],
        replies: Mapping[int, Sequence[int]],
    ) -> list[_KnownIds]:
        """The parts of a rendered text whose ids are known, in order."""
        known = []
        for index, token_ids in sorted(replies.items()):
            if not (0 <= index < len(rendered.cores) and index < len(messages)):
                continue
            content = messages[index]["content"]
            start = rendered.cores[index][0] - (len(content) - len(content.lstrip()))
            end = start + len(content)
            if content and start >= 0 and rendered.text[start:end] == content == self._decoded(token_ids):
                known.append(_KnownIds(start, end, tuple(token_ids)))
        return known

    def _decoded(self, token_ids: Sequence[int]) -> str:
        """The text of a reply made of these tokens."""
        detokenizer = self.detokenizer(is_chat=True)
        return "".join(map(detokenizer.feed, token_ids)) + detokenizer.flush()

    def _encode(self, text: str, shielded: str, known: Sequence[_KnownIds] = ()) -> list[int]:
        vocabulary = self._vocabulary
        token_ids: list[int] = []
        for piece in vocabulary.added.split(text, shielded):
            if piece.token_id is not None:
                token_ids.append(piece.token_id)
                continue
            start = piece.start
            for part in known:
                if piece.start <= part.start and part.end <= piece.end:
                    token_ids += self._encode_part(
                        text, start, part.start, opens=piece.opens and start == piece.start
                    )
                    token_ids += part.token_ids
                    start = part.end
            token_ids += self._encode_part(text, start, piece.end, opens=piece.opens and start == piece.start)
        return token_ids

    def _encode_part(self, text: str, start: int, end: int, *, opens: bool) -> list[int]:
        """Encode ordinary text; `opens` when it stands at the beginning or after an added token."""
        vocabulary = self._vocabulary
        is_first = opens if vocabulary.prefix == "gaps" else start == 0
        encoder = vocabulary.first if is_first else vocabulary.rest
        with rust_guard("encode this text"):
            # A batch of one, since only that lets other threads run meanwhile (a heartbeat, say).
            token_ids: list[int] = encoder.encode_batch([text[start:end]], add_special_tokens=False)[0].ids
        return token_ids

    def _with_bos(self, token_ids: list[int]) -> tuple[int, ...]:
        bos = self._vocabulary.bos_id
        if bos is not None and self._vocabulary.add_bos and token_ids[:1] != [bos]:
            return (bos, *token_ids)
        return tuple(token_ids)
