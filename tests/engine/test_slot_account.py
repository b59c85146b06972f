"""What a client remembers about the slots of its engine."""

from inglenook.engine.homes.messages import LoadModel, Submit, UnloadModel
from inglenook.engine.request import Failed, Loaded, LoadOptions, Request
from inglenook.engine.slot_account import SlotAccount

SUBMIT = Submit(9, Request(prompt="Hello"))
LOADED = Loaded(
    slot="chat",
    name="m",
    architecture="llama",
    backend="native-cpu",
    backend_reason="",
    context_length=2048,
    weight_bytes=1,
    kv_bytes=1,
    load_s=0.1,
)
MISSING = Failed("NotLoadedError", "No model is loaded in 'chat'. Load one first.")


def load(id_: int, slot: str = "chat") -> LoadModel:
    return LoadModel(id_, slot, f"/{id_}.gguf", LoadOptions())


def account_with(*commands: LoadModel) -> SlotAccount:
    account = SlotAccount()
    for command in commands:
        account.note_sent(command)
        account.settle(command, LOADED)
    return account


def test_a_loaded_slot_is_loaded_again_from_the_same_file_under_a_new_number():
    account = account_with(load(1))

    again = account.load_again("chat", 7)

    assert (again.id, again.path, list(account)) == (7, "/1.gguf", ["chat"])


def test_a_slot_that_is_emptied_is_forgotten():
    account = account_with(load(1), load(2, "draft"))

    account.note_sent(UnloadModel(3, "chat"))

    assert list(account) == ["draft"]


def test_the_answer_to_a_load_that_was_overtaken_changes_nothing():
    account = SlotAccount()
    first, second = load(1), load(2)
    account.note_sent(first)
    account.note_sent(second)

    account.settle(first, Failed("ModelFileError", "Damaged."))
    account.settle(second, LOADED)

    assert account.load_again("chat", 3).path == "/2.gguf"
    assert account.settle(SUBMIT, MISSING) == MISSING


def test_a_request_for_a_slot_whose_load_failed_is_told_why():
    account = account_with(load(1))
    account.note_sent(load(2))
    account.settle(load(2), Failed("ModelFileError", "Damaged."))

    answer = account.settle(SUBMIT, MISSING)

    assert not account
    assert answer == Failed("NotLoadedError", MISSING.message + " The last load failed: Damaged.")


def test_the_reason_of_a_failed_load_is_gone_once_another_is_sent():
    account = SlotAccount()
    account.note_death("chat", "The engine ended.")

    account.note_sent(load(2))

    assert account.not_loaded("chat", "Empty.") == Failed("NotLoadedError", "Empty.")


def test_other_failures_pass_unchanged():
    account = SlotAccount()
    account.note_death("chat", "The engine ended.")
    failure = Failed("ContextLengthError", "Too long.")

    assert account.settle(SUBMIT, failure) == failure


def test_only_slots_that_are_awake_are_put_to_sleep_and_a_load_wakes_them():
    account = account_with(load(1), load(2, "draft"))

    first, second = account.put_to_sleep(), account.put_to_sleep()
    account.load_again("draft", 5)

    assert (first, second) == ({"chat", "draft"}, set())
    assert (account.sleeps("chat"), account.sleeps("draft")) == (True, False)
