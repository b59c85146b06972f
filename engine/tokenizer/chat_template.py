"""`ChatTemplate`: messages to one prompt text, and which of its characters a person or document wrote.

The text is what the template makes of the plain messages, byte for byte. Which characters are whose is found by
rendering once more with the contents disguised: each character that control tokens are made of is exchanged for a
private-use character, and marks stand around each content. If taking the disguise off gives the plain text, then
the disguised characters are exactly those that came from contents. A template that refuses a chat is asked again with
what `chat_repairs.py` makes of it.

A template that looks into contents may render them differently in disguise. Then weaker disguises are tried: no marks;
only the first and last characters of control tokens; and in replies, nothing of words like `</think>` that the
template itself names. At last the control tokens of the plain text are compared with those of a render with neutral
contents. If even these differ, the prompt is refused: no path lets a content make a control token.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from inglenook.engine.errors import TEMPLATE_ADVICE, TemplateError
from inglenook.engine.tokenizer.added_tokens import AddedToken, shield
from inglenook.engine.tokenizer.chat_repairs import Messages, chat_repairs
from inglenook.engine.tokenizer.template_process import TemplateProcess
from inglenook.engine.tokenizer.template_worker import Rendered

MAX_TEMPLATE_BYTES = 64 << 10  # the longest real ones have about 20 KB
_PRIVATE_USE = range(0xF0000, 0xFFFFE)


class _RefusedError(TemplateError):
    """The template raised an error of its own, or has no place for the system message."""


@dataclass(frozen=True, slots=True)
class RenderedChat:
    """A prompt: its text, the same text with what people wrote shielded (see `added_tokens`), notices for the user.

    `cores` has, for each message, where its content stands in the text without the white space around it; it is empty
    where that is not known.
    """

    text: str
    shielded: str
    notices: tuple[str, ...] = ()
    cores: tuple[tuple[int, int], ...] = ()


class ChatTemplate:
    """One model's chat template.

    `control_ids` gives the added tokens in a text that is all template, for comparing renders.
    """

    def __init__(
        self,
        source: str,
        variables: Mapping[str, str],
        added: Iterable[AddedToken],
        control_ids: Callable[[str], Sequence[int]],
        process: TemplateProcess,
    ) -> None:
        self._source = source
        self._variables = variables
        self._control_ids = control_ids
        self._process = process
        tokens = [token for token in added if not token.is_text]
        self._signs = frozenset(c for token in tokens for c in _signs(token.content))
        self._edges = frozenset(c for token in tokens for c in (token.content[0], token.content[-1]))
        # What a template may look for in replies: tokens with a text of their own, as in <think>.
        self._inspected = [t.content for t in tokens if not t.special and t.content in source]

    def render(self, messages: Messages) -> RenderedChat:
        """Render a chat up to and with the prompt for the next reply.

        Raises:
            TemplateError: the template is too long, broken, over its budget, or refuses these messages.
        """
        size = len(self._source.encode("utf-8", "replace"))
        if size > MAX_TEMPLATE_BYTES:
            raise TemplateError(
                f"This model's chat template has {size:,} bytes; at most {MAX_TEMPLATE_BYTES:,} are allowed. "
                + TEMPLATE_ADVICE
            )
        messages = [{"role": m["role"], "content": well_formed(m["content"])} for m in messages]
        try:
            return self._render(messages)
        except _RefusedError as refusal:
            for chat, notices in chat_repairs(messages):
                with contextlib.suppress(_RefusedError):
                    rendered = self._render(chat)
                    # Folding a system message into the question after it moves the others up by one.
                    moved = len(messages) - len(chat)
                    is_plain = len(rendered.cores) == len(chat) and chat[1:] == messages[moved + 1 :]
                    cores = ((0, 0),) * moved + rendered.cores if is_plain and moved >= 0 else ()
                    return RenderedChat(rendered.text, rendered.shielded, notices, cores)
            raise TemplateError(str(refusal)) from None

    def _render(self, messages: Messages) -> RenderedChat:
        """Render a chat as it is."""
        disguise = _Disguise(messages, self._source, self._signs | self._edges)
        plain, marked = self._renders(messages, [messages, disguise.marked()])
        if plain.text is None:
            raise _unusable(plain)
        restored = disguise.restore(marked.text)
        if restored is not None and restored.text == plain.text:
            absent = (m["role"] == "system" and m["content"].strip() not in plain.text for m in messages)
            if any(absent if not restored.has_first else list(absent)[1:]):
                raise _RefusedError("This model's chat template leaves out the system message.")
            return restored
        return self._render_inspecting(messages, plain.text, disguise)

    def _render_inspecting(self, messages: Messages, plain: str, disguise: _Disguise) -> RenderedChat:
        """Find whose characters are whose where marks change what the template does."""
        neutral: Messages = [
            {**m, "content": "x" if m["content"].strip() else m["content"]} for m in messages
        ]
        disguised = (
            disguise.unmarked(self._signs | self._edges),
            disguise.unmarked(self._edges),
            disguise.unmarked(self._edges, spared=self._inspected),
        )
        *weaker, without = self._renders(messages, [*disguised, neutral])
        for rendered in weaker:
            restored = disguise.restore(rendered.text)
            if restored is not None and restored.text == plain:
                return restored
        if without.text is None or self._control_ids(plain) != self._control_ids(without.text):
            raise TemplateError(
                "A message holds text like this model's control tokens, and the model's chat template handles it in "
                "a way that cannot be kept apart from them. Remove such text (in angle brackets, say) from the chat."
            )
        return RenderedChat(plain, plain)

    def _renders(self, messages: Messages, chats: list[Messages]) -> list[Rendered]:
        characters = sum(len(m["content"]) for m in messages)
        return self._process.render(
            self._source, chats, self._variables, max_characters=4 * characters + 1_000_000
        )


@dataclass(frozen=True, slots=True)
class _Restored(RenderedChat):
    has_first: bool = True  # whether the first message's content was rendered


class _Disguise:
    """Exchanges characters of contents for private-use ones that occur nowhere in the chat, and back."""

    def __init__(self, messages: Messages, source: str, characters: frozenset[str]) -> None:
        self._messages = messages
        taken = set(source).union(*(m["content"] for m in messages))
        free = _free_characters(taken)
        self._first, self._begin, self._end = next(free), next(free), next(free)
        self._exchange = {
            ord(c): replacement for c, replacement in zip(sorted(characters & taken), free, strict=False)
        }
        self._original = {ord(replacement): chr(code) for code, replacement in self._exchange.items()}

    def marked(self) -> Messages:
        """Contents in disguise, with marks just inside the white space around them."""
        chat = []
        for index, message in enumerate(self._messages):
            content = message["content"]
            core = content.strip()
            if core:
                at = content.index(core)
                first = self._first if index == 0 else ""
                core = f"{first}{self._begin}{core.translate(self._exchange)}{self._end}"
                content = content[:at] + core + content[at + len(content.strip()) :]
            chat.append({**message, "content": content})
        return chat

    def unmarked(self, characters: frozenset[str], spared: Sequence[str] = ()) -> Messages:
        """Contents with only `characters` in disguise, and in replies not those of the words `spared`."""
        exchange = {
            code: replacement for code, replacement in self._exchange.items() if chr(code) in characters
        }
        words = re.compile("|".join(map(re.escape, sorted(spared, key=len, reverse=True))) or r"(?!)")
        return [
            {**m, "content": _translate(m["content"], exchange, words if m["role"] == "assistant" else None)}
            for m in self._messages
        ]

    def restore(self, rendered: str | None) -> _Restored | None:
        """Take the disguise off a rendered text, and shield what wore it."""
        if rendered is None:
            return None
        has_first = self._first in rendered
        rendered = rendered.replace(self._first, "")
        text: list[str] = []
        shielded: list[str] = []
        is_balanced = all(
            mark == (self._begin if i % 2 == 0 else self._end)
            for i, mark in enumerate(re.findall(f"[{self._begin}{self._end}]", rendered))
        ) and rendered.count(self._begin) == rendered.count(self._end)
        cores: list[tuple[int, int]] = []
        length = 0
        for part, is_inside in self._parts(rendered):
            original = part.translate(self._original)
            text.append(original)
            length += len(original)
            if is_inside and is_balanced:
                shielded.append(shield(original))
                cores.append((length - len(original), length))
            else:
                shielded.append(
                    "".join(shield(o) if o != p else o for o, p in zip(original, part, strict=True))
                )
        whole = "".join(text)
        contents = [message["content"].strip() for message in self._messages]
        if [whole[start:end] for start, end in cores] != contents:
            cores = []
        return _Restored(whole, "".join(shielded), (), tuple(cores), has_first)

    def _parts(self, rendered: str) -> Iterator[tuple[str, bool]]:
        """The text between marks, and whether the last mark was one that begins."""
        is_inside = False
        for part in re.split(f"([{self._begin}{self._end}])", rendered):
            if part in (self._begin, self._end):
                is_inside = part == self._begin
            elif part:
                yield part, is_inside


def _translate(content: str, exchange: dict[int, str], spared: re.Pattern[str] | None) -> str:
    if spared is None:
        return content.translate(exchange)
    parts = []
    cursor = 0
    for match in spared.finditer(content):
        parts += [content[cursor : match.start()].translate(exchange), match.group()]
        cursor = match.end()
    return "".join([*parts, content[cursor:].translate(exchange)])


def well_formed(text: str) -> str:
    """Replace surrogates that stand alone, which no encoding can hold."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _signs(content: str) -> str:
    """The characters of a token that rarely stand in words; all of them where there are none such."""
    return "".join(c for c in content if not c.isalnum() and not c.isspace()) or content


def _free_characters(taken: set[str]) -> Iterator[str]:
    free = (chr(code) for code in _PRIVATE_USE if chr(code) not in taken)
    yield from free
    raise TemplateError(
        "The chat uses all of Unicode's private-use characters; it cannot be rendered safely."
    )


def _unusable(rendered: Rendered) -> TemplateError:
    if rendered.refused:
        return _RefusedError(f"This model's chat template refuses the messages: {rendered.problem}")
    return TemplateError(
        f"This model's chat template is not usable: {rendered.problem.rstrip('.')}. {TEMPLATE_ADVICE}"
    )
