"""`ShownMessages`: stored messages and their sources as the transcript shows them: state, citations, what was checked.

Keeps the citations of each message, to be opened by their numbers. GUI thread only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from PySide6.QtCore import QObject

from inglenook.app.answers.citations import ShownCitation, shown_citations
from inglenook.app.answers.sentence_checks import SentenceCheck, sentence_checks
from inglenook.app.chat.message_list_model import Citation, Message, State
from inglenook.app.chat.thinking_clock import ThinkingClock
from inglenook.app.context.reply_figures import figures_line
from inglenook.app.text.reasoning import PartedReply, part_reply
from inglenook.storage import records
from inglenook.storage.records import Source


class ShownMessages(QObject):
    """Makes what is shown; `texts` has what this program is writing, `has_figures` says whether speeds are wanted."""

    def __init__(
        self,
        texts: Mapping[int, str],
        clock: ThinkingClock,
        has_figures: Callable[[], bool],
        parent: QObject,
    ) -> None:
        super().__init__(parent)
        self._texts, self._clock, self._has_figures = texts, clock, has_figures
        self._citations: dict[int, list[ShownCitation]] = {}

    def clear(self) -> None:
        """Forget the citations of all messages."""
        self._citations = {}

    def citation(self, message_id: object, number: int) -> ShownCitation | None:
        """Return a citation by the number it is shown with."""
        found = self._citations.get(message_id, []) if isinstance(message_id, int) else []
        return next((citation for citation in found if citation.number == number), None)

    def message(self, message: records.Message, sources: Sequence[Source] = ()) -> Message:
        """Return a message as it is shown."""
        sources = _of_answer(message, sources)
        cited = shown_citations(message.text, sources) if sources else []
        others = _others(sources, len(cited))
        self._citations[message.id] = cited + others
        clock = self._clock
        text = self._texts.get(message.id) or message.text
        end_tag = message.reasoning_end or clock.end_tag(message.id)
        return Message(
            message.id,
            "user" if message.role == "user" else "assistant",
            text,
            self._state(message),
            message.error,
            tuple(self._shown(citation) for citation in cited),
            message.branch,
            message.num_branches,
            message.reasoning_s if message.reasoning_s is not None else clock.seconds(message.id),
            end_tag,
            figures_line(message) if self._has_figures() else "",
            unfound_sentences(text, sentence_checks(message.text, sources), end_tag) if sources else (),
            tuple(self._shown(citation, is_cited=False) for citation in others),
        )

    def _state(self, message: records.Message) -> State:
        if message.status == "failed":
            return "failed"
        if message.status == "streaming":
            # What this program is not writing was cut off with the program that wrote it.
            return "streaming" if message.id in self._texts else "interrupted"
        if message.status == "interrupted":
            return "interrupted"
        by_reason: dict[str | None, State] = {
            "cancelled": "stopped",
            "length": "cut",
            "repetition": "repeated",
        }
        return by_reason.get(message.finish_reason, "complete")

    def _shown(self, citation: ShownCitation, *, is_cited: bool = True) -> Citation:
        source, place = citation.source, citation.source.place
        title, page = source.document_name, place.page_label or str(place.page_index + 1)
        if place.first_line is not None:
            one = place.first_line == place.last_line
            words = self.tr("line {0}") if one else self.tr("lines {0}–{1}")
            title, page = f"{title}, {words.format(place.first_line, place.last_line)}", ""
        return Citation(citation.number, title, page, source.quote, citation.is_verified, is_cited)


def unfound_sentences(
    text: str, checks: Sequence[SentenceCheck], end_tag: str = "", parted: PartedReply | None = None
) -> tuple[str, ...]:
    """Return the sentences of a reply's answer that no passage says; what was only thought is not judged."""
    missing = [check for check in checks if check.status == "not found"]
    if not missing:
        return ()
    parted = parted or part_reply(text, end_tag=end_tag)
    return tuple(
        text[check.start : check.end].strip()
        for check in missing
        if parted.answer_range(check.start, check.end) is not None
    )


def _of_answer(message: records.Message, sources: Sequence[Source]) -> Sequence[Source]:
    """Sources of a reply; what only the thought rests on counts as found but not used."""
    parted = part_reply(message.text, end_tag=message.reasoning_end) if sources else None
    if parted is None or not parted.has_thought:
        return sources
    return [
        source
        if source.answer_range is None or parted.answer_range(*source.answer_range) is not None
        else replace(source, is_cited=False, answer_range=None)
        for source in sources
    ]


def _others(sources: Sequence[Source], num_cited: int) -> list[ShownCitation]:
    """The passages that the model had and no sentence rests on, numbered after the cited ones."""
    rest = [source for source in sources if not source.is_cited]
    return [ShownCitation(num_cited + place, source, True) for place, source in enumerate(rest, 1)]
