"""The pictures in their order, each pose a function of the `Studio`; they build on each other within a look."""

from __future__ import annotations

from screenshot_studio import Studio
from screenshot_texts import ANSWER, MANUAL, QUESTION, THOUGHT
from small_pdf import write_pdf


def first_run(studio: Studio) -> None:
    """The page of the first start, and the models that could be fetched instead."""
    studio.open()
    window = studio.window
    studio.until(lambda: window.page is window.welcome)
    studio.grab("first-run")
    studio.close()


def loading(studio: Studio) -> None:
    """The second start: the model is on its way into memory."""
    studio.add_models()
    studio.open()
    state = studio.application.bridge.model_state
    studio.settle(lambda: state().phase == "loading", 60)
    studio.window.show_models()
    studio.settle(lambda: state().phase != "loading", 0.1)
    studio.snap("models-loading")
    studio.until(lambda: state().phase == "ready")
    set_ = studio.application.settings.set
    set_("chat.temperature", 0.0)
    set_("chat.max_tokens", 400)
    set_("chat.titles", False)  # the names of chats are the same each time
    studio.window.show_chat()
    studio.grab("empty-chat")


def streaming(studio: Studio) -> None:
    """A reply while it is written."""
    chat = studio.window.chat
    studio.ask("Tell me a story about a small bakery by the sea, in ten sentences.")
    studio.settle(lambda: len(chat.model.messages) == 2 and len(chat.model.messages[1].text) > 420, 60)
    studio.snap("streaming")
    studio.until(lambda: chat.model.messages[1].state != "streaming")


def documents(studio: Studio) -> None:
    """Documents that are read, refused, locked and ready; and a question about two of them."""
    window, application = studio.window, studio.application
    studio.act("new_chat")
    manual = write_pdf(studio.folder / "Heat pump manual.pdf", *MANUAL)
    notes = studio.folder / "Meeting notes.md"
    notes.write_text("# Meeting\n\nThe installer comes on 14 May at nine.\n", encoding="utf-8")
    window.files_dropped.emit([manual, notes])
    indexing = application.indexing
    studio.until(
        lambda: len(indexing.documents) == 2 and all(d.status == "ready" for d in indexing.documents)
    )
    studio.settle(limit_s=1.0)  # the passages become vectors
    studio.grab("documents")


def cited_answer(studio: Studio) -> None:
    """An answer from a document beside the page that it came from."""
    window, chat = studio.window, studio.window.chat
    second = next(d for d in studio.application.indexing.documents if d.name == "Meeting notes.md")
    window.sidebar.documents.ticked.emit(second.id, False)
    studio.ask(QUESTION)
    studio.until(lambda: len(chat.model.messages) == 2 and chat.model.messages[1].state != "streaming")
    reply = chat.model.messages[1]
    if reply.citations:
        chat.view.citation_activated.emit(reply.id, reply.citations[0].number)
        studio.until(lambda: not window.source.canvas.is_empty)
    studio.grab("cited-answer")
    window.close_source()


def refused_documents(studio: Studio) -> None:
    """A file that is locked, one that is empty, and one that is being read."""
    import pypdf

    window, application = studio.window, studio.application
    locked = pypdf.PdfWriter(clone_from=studio.folder / "Heat pump manual.pdf")
    locked.encrypt("hearth", algorithm="RC4-128")
    locked.write(studio.folder / "Payslip May.pdf")
    (studio.folder / "Draft.txt").write_text("")
    long = studio.folder / "Building regulations.pdf"
    write_pdf(long, *([f"Section {n}", "A stair has a handrail on both sides."] * 12 for n in range(250)))
    window.files_dropped.emit([studio.folder / "Payslip May.pdf", studio.folder / "Draft.txt", long])
    documents = application.indexing
    studio.settle(lambda: any(d.status == "locked" for d in documents.documents), 60)
    studio.settle(lambda: any(d.status == "reading" for d in documents.documents), 10)
    studio.settle(limit_s=0.1)
    studio.snap("documents-refused")
    ids = [d.id for d in documents.documents if d.name not in ("Heat pump manual.pdf", "Meeting notes.md")]
    for document_id in ids:
        application.indexing.forget(document_id)
    studio.settle(lambda: len(documents.documents) == 2, 30)
    for key in ("refused", "password", "files"):
        window.banner.clear_line(key)


def rich_chat(studio: Studio) -> None:
    """Code, a table, formulas and a thought, folded and open; choosing messages, finding words, a larger text."""
    from inglenook.storage.conversations import Conversations
    from inglenook.storage.messages import Messages

    def write(db: object) -> int:
        conversation = Conversations(db).create("Fibonacci, three ways")  # type: ignore[arg-type]
        messages = Messages(db)  # type: ignore[arg-type]
        asked = messages.add(
            conversation, "user", "How is the nth Fibonacci number computed?", parent_id=None
        )
        reply = messages.add(conversation, "assistant", f"<think>{THOUGHT}</think>{ANSWER}", parent_id=asked)
        messages.set_reasoning(reply, seconds=7.2, end_tag="")
        return conversation

    chats, chat = studio.join.chats, studio.window.chat
    number = studio.write(write)
    chats.refresh()
    chats.open(number)
    studio.until(lambda: chats.conversation_id == number and len(chat.model.messages) == 2)
    studio.settle(limit_s=2.5)  # formulas are drawn in a process of their own
    chat.view.verticalScrollBar().setValue(0)
    studio.grab("rich-answer")
    chat.view.visible_widgets()[-1].thought_toggled.emit(chat.model.messages[1].id)
    studio.settle()
    chat.view.verticalScrollBar().setValue(0)
    studio.grab("reasoning")
    chat.view.visible_widgets()[-1].thought_toggled.emit(chat.model.messages[1].id)
    studio.act("select_messages")
    chat.view.selection.toggle(chat.model.messages[0].id)
    chat.view.verticalScrollBar().setValue(0)
    studio.grab("selection")
    chat.view.selection.end()
    studio.act("find")
    chat.find_bar.field.setText("loop")
    studio.grab("find")
    chat.find_bar.end()
    studio.theme.set_scale(1.5)
    studio.grab("large-text")
    studio.theme.reset_zoom()


def house(studio: Studio) -> None:
    """A folder, a search in all messages, the privacy page, the palette and the keys."""
    window = studio.window
    chats = window.sidebar.chats
    studio.join.chats.list.folders.move([studio.join.chats.conversation_id], "Programming")
    studio.until(lambda: chats.model.row_of_folder("Programming") >= 0)
    studio.grab("folders")
    chats.search.setText("refrigerant")
    studio.until(lambda: any(entry.is_hit for entry in chats.model.entries))
    studio.grab("search")
    chats.search.clear()
    window.pages.show_page("privacy")
    studio.grab("privacy")
    window.show_chat()
    for action in ("palette", "shortcuts"):
        studio.act(action)
        studio.grab_dialog(action)


def shelves(studio: Studio) -> None:
    """The archive, the trash, a chat of which nothing is kept, and questions before what cannot be undone."""
    from inglenook.storage.conversation_shelf import ConversationShelf
    from inglenook.storage.conversations import Conversations

    def write(db: object) -> bool:
        conversations = Conversations(db)  # type: ignore[arg-type]
        for title in ("Packing list for Oslo", "Letter to the landlord"):
            conversations.trash(conversations.create(title))
        for title in ("Tax return 2025", "Old garden plan"):
            ConversationShelf(db).archive(conversations.create(title), is_archived=True)  # type: ignore[arg-type]
        return True

    studio.write(write)
    studio.act("show_archive")
    studio.grab("archive")
    studio.act("show_trash")
    studio.grab("trash")
    studio.act("show_trash")
    studio.window.sidebar.chats.choose_shelf("chats")
    studio.act("temporary_chat")
    studio.grab("temporary-chat")
    studio.act("new_chat")
    studio.join.privacy.ask_forget()
    studio.grab_dialog("confirmation")
    studio.join.backups.back_up(studio.folder / "Inglenook 2026-05-14.inglenook")
    studio.settle(lambda: studio.window.banner.text.startswith("Everything"), 20)
    studio.grab("backup")
    studio.join.backups.look_at(studio.folder / "Inglenook 2026-05-14.inglenook")
    studio.grab_dialog("restore")
    studio.window.banner.clear_line("backup")


def settings(studio: Studio) -> None:
    """The settings, few and all, a value that is refused, two personas and the form of one."""
    personas, page = studio.application.personas, studio.join.settings.page
    studio.window.pages.show_page("settings")
    studio.application.settings.set("chat.preset", "precise")
    studio.grab("settings")
    for name, system in (
        ("Editor", "Cut every sentence that says nothing. Keep the writer's voice."),
        ("Spanish teacher", "Answer in simple Spanish, then say in English what was new."),
    ):
        personas.add(name, system, "precise", {}, lambda _id: None, print)
    studio.until(lambda: len(personas.personas) == 2)
    studio.application.settings.set("chat.persona", personas.personas[0].id)
    studio.application.settings.set("chat.preset", "own")
    page.expert_box.setChecked(True)
    page.rows["chat.temperature"].field.control.setText("5")
    page.rows["chat.temperature"].field.commit()
    page.reveal("chat.temperature")
    studio.grab("settings-refused")
    studio.join.settings.show_personas()
    studio.grab("personas")
    page.expert_box.setChecked(False)
    studio.application.settings.set("chat.preset", "precise")
    studio.join.settings.edit_persona(personas.personas[0].id)
    studio.grab_dialog("persona")
    studio.window.show_chat()


def context(studio: Studio) -> None:
    """How full a chat's window is, and what can be done about it."""
    chats = studio.window.sidebar.chats
    cited = next(entry.id for entry in chats.model.entries if entry.title.startswith("How many"))
    studio.join.chats.open(cited)
    studio.until(lambda: studio.join.chats.conversation_id == cited)
    studio.join.context.foot.meter.click()
    panel = studio.join.context.panel
    studio.until(lambda: panel.larger_button.isVisible() or panel.remark.isVisible())
    studio.grab("context")
    panel.end()


def models(studio: Studio) -> None:
    """The models with what the doctor found, one that is damaged, a second one taken in, and the settings of one."""
    window, application = studio.window, studio.application
    window.show_models()
    chosen = application.models.state.get("smollm2-135m")
    verdict = application.examiner.verdict
    studio.settle(lambda: verdict(chosen.path).light != "none" and not verdict(chosen.path).is_running, 60)
    studio.grab("models")
    studio.join.models.imports.ask(studio.models / "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf")
    studio.until(studio.dialog().import_button.isEnabled)
    studio.grab_dialog("import")
    damaged = studio.folder / "mistral-7b-instruct.Q4_K_M.gguf"
    damaged.write_bytes((studio.models / "SmolLM2-135M-Instruct.Q4_1.gguf").read_bytes()[:2_000_000])
    studio.join.models.imports.ask(damaged)
    studio.until(studio.dialog().problem.isVisible)
    studio.grab_dialog("import-refused")


def comparison(studio: Studio) -> None:
    """Two models on one question; and the settings of a model."""
    from inglenook.app.models.model_settings_dialog import ModelSettingsDialog

    window, application = studio.window, studio.application
    second = studio.models / "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"
    application.examiner.close()  # the models' page has been shown with what it found
    if second.exists():
        application.models.add(second, name="qwen2.5-coder-0.5b")
        studio.until(lambda: application.models.state.get("qwen2.5-coder-0.5b") is not None)
        join = studio.join.models.comparison
        window.pages.show_page("compare")
        join.page.question.setPlainText("Name three uses of a hedge in a garden, as a list.")
        join.page.ask_button.click()
        studio.until(lambda: not join.comparison.is_running)
        studio.grab("two-models")
    window.show_models()
    window.models.settings_requested.emit("smollm2-135m")
    dialog = window.findChild(ModelSettingsDialog)
    studio.until(lambda: bool(dialog.facts.text()))
    studio.grab("model-settings", dialog)
    dialog.own_template_button.click()
    dialog.try_button.click()
    studio.until(dialog.sample.isVisible)
    studio.grab("model-template", dialog)
    dialog.reject()


def death(studio: Studio) -> None:
    """The engine dies in the middle of a reply."""
    window, chat = studio.window, studio.window.chat
    studio.act("new_chat")
    for document in studio.application.indexing.documents:
        window.sidebar.documents.ticked.emit(document.id, False)
    studio.ask("Tell me a long story about a lighthouse.")
    studio.settle(lambda: len(chat.model.messages) == 2 and len(chat.model.messages[1].text) > 150, 60)
    studio.kill_engine()
    studio.until(lambda: bool(window.banner.button.text()))
    studio.grab("engine-died")
    studio.close()


def languages(studio: Studio) -> None:
    """The window in German, and in Arabic from right to left."""
    for language in ("de", "ar"):
        studio.open_ready(language=language)
        chats = studio.window.sidebar.chats
        studio.until(lambda chats=chats: len(chats.model.entries) > 2)  # type: ignore[misc]
        cited = next(entry.id for entry in chats.model.entries if entry.title.startswith("How many"))
        studio.join.chats.open(cited)
        studio.until(lambda cited=cited: studio.join.chats.conversation_id == cited)  # type: ignore[misc]
        studio.grab(f"chat-{language}")
        studio.window.pages.show_page("settings")
        studio.until(lambda: bool(studio.join.settings.page.rows))
        studio.grab(f"settings-{language}")
        studio.window.show_models()
        studio.grab(f"models-{language}")
        if language == "de":
            studio.close()


POSES = (
    first_run, loading, streaming, documents, cited_answer, refused_documents, rich_chat, house, shelves, settings,
    context, models, comparison, death, languages,
)  # fmt: skip
