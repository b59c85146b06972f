"""One turn: save the question, find passages, build the prompt, submit, save the reply as it grows, attach sources.

The question and an empty reply are saved before anything is generated, and the reply's text at least every half
second while it streams, so a crash loses no more. Stopping is acknowledged at once. Several conversations may be
answered at the same time. A prompt whose documents turn out too long is built anew with less of them, and the user is
told what was left out. GUI thread only; nothing here waits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from PySide6.QtCore import QObject, QTimer, Signal

from inglenook.app.answers.cached_text import CachedText
from inglenook.app.answers.evidence_search import EvidenceSearch
from inglenook.app.answers.open_turn import OpenTurn, ReplyOptions, figures_of
from inglenook.app.answers.prompts import Room, build_prompt, dropped_notice
from inglenook.app.answers.retrieval import Evidence
from inglenook.app.answers.sentence_checks import SentenceChecks
from inglenook.app.answers.token_estimate import TokenEstimate
from inglenook.app.answers.turn_ending import TurnEnding
from inglenook.app.answers.turns import (
    Answer,
    Ending,
    OpenedConversation,
    Turn,
    begin_again,
    begin_turn,
    open_conversation,
    resume_turn,
)
from inglenook.app.bridge import CHAT, EngineBridge, ModelState
from inglenook.app.documents.embedder import Embedder
from inglenook.app.tasks import Tasks
from inglenook.app.translations.figures import numbered
from inglenook.app.translations.sentences import said
from inglenook.engine.request import Failed, Finished, Request

__all__ = ["Answer", "Answering", "OpenedConversation", "ReplyOptions", "Turn", "open_conversation"]

SAVE_INTERVAL_MS = 400
MAX_ATTEMPTS = 5

_STOP_PATIENCE_MS = 2000


class Answering(QObject):
    """Asks and answers. GUI thread only. `documents` reads what is searched, where turns are kept elsewhere. `options` is asked at the start of each turn (None: the chat on screen).

    Signals:
        turn_started(Turn): question and reply are saved; show both.
        stage_changed(int, str): reply id, what is being done before the first word ("Searching 2 documents"), or "".
        reply_text(int, str): reply id, the next piece of its text.
        notice(int, str): reply id, a sentence about it while it is written.
        sentence_checked(int, SentenceCheck): reply id; a sentence of an answer from documents is complete, and is
            "supported" by a passage or "not found" in any. `sentence_checks` gives the same for a stored reply.
        reply_stopping(int): Stop was taken; no text of this reply comes any more, and `reply_ended` follows.
        reply_ended(Answer): the reply is saved with its sources. Its `reply.status` is "complete" (finish_reason
            "stop", "length" or "cancelled") or "failed" (`reply.error` is the sentence).
        stop_unanswered(int): the engine has not said for two seconds that it stopped this reply, which has ended here.
        turn_refused(str, str): nothing could be saved: the question's text, to be put back, and a sentence.
    """

    turn_started = Signal(object)
    stage_changed = Signal(int, str)
    reply_text = Signal(int, str)
    sentence_checked = Signal(int, object)
    notice = Signal(int, str)
    reply_stopping = Signal(int)
    reply_ended = Signal(object)
    stop_unanswered = Signal(int)
    turn_refused = Signal(str, str)

    def __init__(
        self,
        bridge: EngineBridge,
        tasks: Tasks,
        embedder: Embedder,
        options: Callable[[int | None], ReplyOptions] = lambda _conversation_id: ReplyOptions(),
        parent: QObject | None = None,
        *,
        documents: Tasks | None = None,
    ) -> None:
        super().__init__(parent)
        self._bridge = bridge
        self._tasks = tasks
        self.cached_text = CachedText(bridge)
        self._options = options
        self._turns: dict[int, OpenTurn] = {}
        self._estimates: dict[str, TokenEstimate] = {}
        self._evidence = EvidenceSearch(documents or tasks, embedder)
        self._ending = TurnEnding(tasks)
        self._save_timer = QTimer(self)
        self._save_timer.setInterval(SAVE_INTERVAL_MS)
        self._save_timer.timeout.connect(self._save)
        bridge.reply_text.connect(self._take_text)
        bridge.reply_finished.connect(self._take_finished)
        bridge.reply_failed.connect(self._take_failed)
        bridge.model_state_changed.connect(self._take_model_state)

    def ask(self, text: str, *, conversation_id: int | None = None, document_ids: Sequence[int] = ()) -> None:
        """Ask at the end of a conversation, or in a new one; `document_ids` are the ticked documents."""
        self._begin_question(text, conversation_id, None, document_ids)

    def edit(self, question_id: int, text: str, *, document_ids: Sequence[int] = ()) -> None:
        """Ask another question in place of one that was asked; the old branch stays."""
        self._begin_question(text, None, question_id, document_ids)

    def regenerate(self, reply_id: int, *, document_ids: Sequence[int] = ()) -> None:
        """Answer the same question once more, as a sibling of a reply; this time the model is asked in any case."""
        options, model = self._options(None), self._bridge.model_state(CHAT).name
        self._tasks.write(
            lambda db: begin_again(
                db, reply_id, document_ids=document_ids, model=model, sampling=options.kept()
            ),
            lambda turn: self._start(turn, document_ids, options, may_refuse=False),
            lambda error: self.turn_refused.emit("", str(error)),
        )

    def resume(self, reply_id: int, *, document_ids: Sequence[int] = ()) -> None:
        """Go on with a reply that was cut off, from where it ended; the same message grows."""
        options = self._options(None)
        self._tasks.write(
            lambda db: resume_turn(db, reply_id),
            lambda turn: self._start(turn, document_ids, options, may_refuse=False),
            lambda error: self.turn_refused.emit("", str(error)),
        )

    def stop(self, reply_id: int) -> None:
        """End a reply early; fine if it has ended."""
        turn = self._turns.get(reply_id)
        if turn is None or turn.is_stopping or turn.is_ending:
            return
        turn.is_stopping = True
        self.reply_stopping.emit(reply_id)
        if turn.request_id is None:
            self._end(turn, turn.ending("cancelled"))
            return
        self._bridge.cancel(turn.request_id)
        QTimer.singleShot(_STOP_PATIENCE_MS, self, lambda: self._give_up_stopping(turn))

    def _give_up_stopping(self, turn: OpenTurn) -> None:
        """End a turn in the window although the engine has not confirmed that it stopped."""
        if not turn.is_ending:
            self._end(turn, turn.ending("cancelled"))
            self.stop_unanswered.emit(turn.reply_id)

    def active_reply(self, conversation_id: int) -> int | None:
        """Return the reply being written in a conversation, for Stop; None when none is."""
        for reply_id, turn in self._turns.items():
            if turn.saved.conversation.id == conversation_id and not turn.is_ending:
                return reply_id
        return None

    def close(self) -> None:
        """Stop everything and give what there is of each reply to the writer."""
        self._save_timer.stop()
        for turn in list(self._turns.values()):
            if turn.request_id is not None:
                self._bridge.cancel(turn.request_id)
            if not turn.is_ended:
                turn.is_ending = turn.is_ended = True
                self._tasks.write(turn.ender(turn.ending("cancelled")))

    def _begin_question(
        self, text: str, conversation_id: int | None, in_place_of: int | None, document_ids: Sequence[int]
    ) -> None:
        if not text.strip():
            return
        options, model = self._options(conversation_id), self._bridge.model_state(CHAT).name
        self._tasks.write(
            lambda db: begin_turn(
                db,
                text,
                conversation_id=conversation_id,
                in_place_of=in_place_of,
                document_ids=document_ids,
                model=model,
                sampling=options.kept(),
            ),
            lambda turn: self._start(turn, document_ids, options),
            lambda error: self.turn_refused.emit(text, str(error)),
        )

    def _start(
        self, saved: Turn, document_ids: Sequence[int], options: ReplyOptions, *, may_refuse: bool = True
    ) -> None:
        turn = self._turns[saved.reply.id] = OpenTurn(saved, tuple(document_ids), options, may_refuse)
        if saved.reply.text:
            # A reply that is gone on with.
            turn.begun, turn.begun_token_ids = saved.reply.text, saved.reply.token_ids
            turn.pieces, turn.token_ids = [turn.begun], list(turn.begun_token_ids)
        self.turn_started.emit(saved)
        self._go_on(turn)

    def _go_on(self, turn: OpenTurn) -> None:
        """Begin with the retrieval once the model stands, or say why it does not."""
        self._bridge.wake()
        state = self._bridge.model_state(CHAT)
        if state.facts is None and self._bridge.engine_state.can_restart and not turn.has_restarted:
            turn.has_restarted = True
            self._bridge.restart()
            state = self._bridge.model_state(CHAT)
        turn.is_waiting = state.phase == "loading"
        if turn.is_waiting:
            self.stage_changed.emit(turn.reply_id, self.tr("Waiting for the model"))
        elif state.facts is None:
            sentence = state.sentence or self.tr("No model is loaded. Choose one on the model page.")
            self._end(turn, turn.ending("error", sentence))
        elif turn.document_ids:
            count = len(turn.document_ids)
            self.stage_changed.emit(
                turn.reply_id,
                self.tr("Searching 1 document") if count == 1 else numbered("Searching {0} documents", count),
            )
            self._evidence.find(
                turn,
                lambda: self._whole_bytes(turn),
                lambda evidence: self._take_evidence(turn, evidence),
                lambda error: self._end(turn, turn.ending("error", str(error))),
            )
        else:
            self._submit(turn)

    def _whole_bytes(self, turn: OpenTurn) -> int:
        state = self._bridge.model_state(CHAT)
        return round(self._room(turn, state).whole_tokens * self._estimate(state).bytes_per_token)

    def _take_evidence(self, turn: OpenTurn, evidence: Evidence) -> None:
        turn.evidence = evidence
        turn.notices += evidence.notices
        if evidence.candidates and not evidence.is_refusal:
            turn.checks = SentenceChecks(evidence.candidates, turn.saved.question.text)
            for check in turn.checks.take(turn.begun):
                self.sentence_checked.emit(turn.reply_id, check)
        if evidence.answer and not turn.begun:
            self._say(turn, said(evidence.answer))
        else:
            self._submit(turn)

    def _say(self, turn: OpenTurn, text: str) -> None:
        """Answer without the model: what was counted, or that nothing was found to answer from."""
        if turn.is_stopping or turn.is_ending:
            return
        turn.pieces.append(text)
        self.stage_changed.emit(turn.reply_id, "")
        self.reply_text.emit(turn.reply_id, text)
        self._end(turn, turn.ending("stop"))

    def _submit(self, turn: OpenTurn) -> None:
        if turn.is_stopping or turn.is_ending:
            return
        state = self._bridge.model_state(CHAT)
        evidence = turn.evidence
        is_whole = bool(evidence.whole) and turn.num_attempts == 0
        turn.prompt = build_prompt(
            turn.saved.question.text,
            room=self._room(turn, state),
            count=self._estimate(state).count,
            history=turn.saved.history,
            system=turn.options.system,
            whole=evidence.whole if is_whole else (),
            passages=() if is_whole else evidence.candidates,
        )
        turn.num_attempts += 1
        self.stage_changed.emit(turn.reply_id, self.tr("Reading"))
        turn.request_id = self._bridge.submit(
            Request(
                messages=turn.prompt.messages,
                sampling=turn.options.sampling,
                owner=self.cached_text.owner(turn.saved.conversation.id, turn.document_ids),
                overflow=turn.options.overflow,
                pinned=turn.prompt.pinned,
                reply_token_ids=turn.prompt.reply_token_ids,
                reply_begin=turn.begun,
                reply_begin_ids=turn.begun_token_ids,
            )
        )

    def _room(self, turn: OpenTurn, state: ModelState) -> Room:
        context = state.facts.context_length if state.facts is not None else 2048
        return Room.of(context, turn.options.sampling.max_tokens)

    def _estimate(self, state: ModelState) -> TokenEstimate:
        return self._estimates.setdefault(state.name, TokenEstimate())

    def _of_request(self, request_id: int) -> OpenTurn | None:
        return next((turn for turn in self._turns.values() if turn.request_id == request_id), None)

    def _take_text(self, request_id: int, text: str, token_ids: tuple[int, ...]) -> None:
        turn = self._of_request(request_id)
        if turn is None or turn.is_stopping or turn.is_ending:
            return
        if len(turn.pieces) == bool(turn.begun):
            self.stage_changed.emit(turn.reply_id, "")
        turn.pieces.append(text)
        turn.token_ids += token_ids
        turn.is_saved = False
        if not self._save_timer.isActive():
            self._save_timer.start()
        self.reply_text.emit(turn.reply_id, text)
        for check in turn.checks.take(text) if turn.checks is not None else ():
            self.sentence_checked.emit(turn.reply_id, check)

    def _take_finished(self, request_id: int, event: Finished) -> None:
        turn = self._of_request(request_id)
        if turn is None:
            return
        if turn.prompt is not None:
            dropped = turn.prompt.num_dropped_turns + turn.prompt.num_turns_among(event.left_out)
            if dropped:
                turn.notices.append(dropped_notice(dropped))
            if not event.left_out:
                estimate = self._estimate(self._bridge.model_state(CHAT))
                estimate.observe(turn.prompt.num_bytes, event.prompt_tokens)
        turn.notices += event.notices
        self._end(turn, replace(turn.ending(event.finish_reason), figures=figures_of(event)))

    def _take_failed(self, request_id: int, event: Failed) -> None:
        turn = self._of_request(request_id)
        if turn is None:
            return
        if (
            event.kind == "ContextLengthError"
            and turn.evidence.candidates
            and turn.num_attempts < MAX_ATTEMPTS
            and not turn.is_stopping
        ):
            self._estimate(self._bridge.model_state(CHAT)).lower()
            self._submit(turn)
            return
        self._end(turn, turn.ending("error", event.message))

    def _take_model_state(self, state: ModelState) -> None:
        if state.slot == CHAT and state.phase != "loading":
            for turn in list(self._turns.values()):
                if turn.is_waiting and not turn.is_ending:
                    self._go_on(turn)

    def _save(self) -> None:
        """Save the text of what has grown; the timer rests while nothing does."""
        unsaved = [turn for turn in self._turns.values() if not turn.is_saved and not turn.is_ending]
        if not unsaved:
            self._save_timer.stop()
        for turn in unsaved:
            turn.is_saved = True
            self._tasks.write(turn.saver(), None, partial(self._tell_once, turn))

    def _tell_once(self, turn: OpenTurn, error: Exception) -> None:
        sentence = str(error)
        if sentence not in turn.notices:
            turn.notices.append(sentence)
            self.notice.emit(turn.reply_id, sentence)

    def _end(self, turn: OpenTurn, ending: Ending) -> None:
        """Attach the sources, then save all in one transaction and tell it."""
        if turn.is_ending:
            return
        turn.is_ending = True
        if turn.prompt is not None:
            turn.notices += turn.prompt.notices
        for check in turn.checks.finish() if turn.checks is not None else ():
            self.sentence_checked.emit(turn.reply_id, check)
        self._ending.end(turn, ending, lambda answer: self._take_ended(turn, answer))

    def _take_ended(self, turn: OpenTurn, answer: Answer | None) -> None:
        del self._turns[turn.reply_id]
        if answer is not None:
            self.reply_ended.emit(answer)
