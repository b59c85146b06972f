"""Faults that other engines had, each as a test of its whole kind: here, or where the table says.

V are cases of vLLM, llama.cpp and others as the study of engines numbers them, D those of desktop programs.

    V1  part of a stop string is shown           test_what_is_held_back_is_exactly_a_proper_prefix_of_a_stop_string
    V2  held-back text is lost at the end        test_a_reply_cut_anywhere_loses_no_text
    V3  characters cut over tokens               test_any_bytes_split_anywhere_decode_as_python_does_with_replace
    V5  two BOS tokens, V6 none                  test_bos_is_never_doubled_and_never_dropped
    V7  a template that is not the model's       test_renders_equal_those_of_transformers
    V9  a reply that never stops                 test_stop_tokens_are_the_union_of_all_keys_and_known_turn_ends
    V10 ids that are not the model's             test_a_thousand_strings_have_the_reference_tokenizers_ids
    V11 rotary scaling ignored                   test_far_positions_give_the_logits_of_transformers
    V13 an embedding read in a wrong format      test_an_embedding_is_read_in_the_format_that_its_own_header_names
    V14 keys of one adapter used for another     test_a_request_wears_its_adapter_and_shares_no_cache_with_others
                                                 test_an_adapter_that_changed_on_disk_is_read_again
                                                 test_no_salt_reaches_the_cache_of_an_adapter
    V15 two pictures, one placeholder            test_a_part_that_is_no_text_is_refused_and_no_placeholder_stands_for_it
    V17 a prompt that is cached whole            test_a_prompt_of_any_length_asked_again_is_answered_alike
    V18 hits counted before blocks are held      test_blocks_evicted_between_arrival_and_start_are_not_used
    V19 log-probabilities over a cached prefix   test_logprobs_are_the_same_over_a_cached_prefix
    V21 a block lost with each request           test_two_thousand_requests_with_random_cancels_leak_nothing
    V22 a cancel while a step runs               test_whatever_makes_the_only_request_pointless_ends_its_step
    V23 preemption repeats or drops tokens       test_preemption_changes_nothing_and_no_block_leaks
    V25 addresses that wrap at 2^31              test_blocks_beyond_two_to_the_31_elements_are_found
    V26 a row that sees nothing                  test_a_padded_row_of_a_graph_gives_zeros_and_reads_nothing
    V27 sums that overflow in 16 bits            test_large_values_over_a_long_context_stay_numbers
    V29 scales of the KV cache lost              test_a_reply_over_an_int8_cache_is_the_same_cold_warm_and_crowded
    V30 windows and cached prefixes              test_a_hit_needs_only_what_the_next_token_sees
    V31 n equal texts from one seed              test_several_choices_differ_and_each_equals_itself_alone
    V33 rejected drafts leave traces             test_speculation_changes_no_token_and_saves_steps
    V34 drafts get past what is forbidden        test_what_is_forbidden_and_what_ends_a_reply_hold_within_drafts
    V35 T near 0                                 test_a_tiny_temperature_does_not_overflow
    V37 top-p drops the token that crosses       test_top_p_keeps_the_token_that_crosses_it
    V38 an empty prompt ends the engine          test_an_empty_prompt_is_refused_and_others_go_on
    V39 max_tokens 0                             test_no_new_tokens_is_legal_and_only_prefills
    D1  a reply that mentions a control token    test_look_alikes_in_text_are_ordinary_text
    D2  control tokens shown, also after Stop    test_a_reply_cut_anywhere_loses_no_text
    D3  greedy runs that differ                  test_a_prompt_of_any_length_asked_again_is_answered_alike
    D5  "roles must alternate"                   test_a_template_that_refuses_a_chat_gets_it_with_turns_and_it_is_said
    D6  templates that are not rendered right    test_renders_equal_those_of_transformers
                                                 test_what_chat_templates_rely_on_works
    D7  two BOS tokens, or none                  test_bos_is_never_doubled_and_never_dropped
    D9  an overflow of 5 tokens loses half       test_the_fewest_oldest_turns_are_left_out
    D10 the system prompt is lost                test_system_and_pinned_turns_and_the_last_turn_stay
    D11 each overflow ends differently           test_the_engine_refuses_by_default_and_loses_nothing
    D13 the overflow policy does nothing         test_around_the_limit_each_policy_does_what_it_says
    D14 two long chats at once                   test_long_chats_that_do_not_fit_together_are_all_answered
    D15 a passage longer than the context        test_a_passage_longer_than_the_context_is_refused_with_its_numbers
    D17 cold, warm and batched answers differ    test_batch_mates_change_nothing
    D18 drafting changes answers                 test_fifty_prompts_are_answered_alike_with_and_without_drafts
    D19 drafting slows                           test_no_text_costs_more_than_the_budget
    D21 endless nonsense                         test_logits_that_are_not_numbers_fail_that_request_alone
    D22 a swap counts the old model too          test_a_swap_of_models_counts_the_old_one_as_gone
    D23 refusals without numbers                 test_what_does_not_fit_is_refused_with_the_two_numbers
    D25 work goes on for nobody                  test_a_parent_that_ends_in_any_way_leaves_no_orphan
    D26 parallel requests halve the context      test_long_chats_that_do_not_fit_together_are_all_answered
    D27 what cannot be done is left out silently test_what_a_message_brings_along_and_we_do_not_read_is_refused_by_name
                                                 test_what_the_engine_cannot_keep_is_refused
"""

import re
from pathlib import Path

import pytest
from tiny_gguf import CONTEXT, write_tiny_gguf

from inglenook.engine import core, memory_plan
from inglenook.engine.backend_choice import backend_statuses
from inglenook.engine.client import EngineClient
from inglenook.engine.errors import ContextLengthError, InvalidRequestError
from inglenook.engine.kv_blocks import KVBlocks
from inglenook.engine.kv_cache import BLOCK_SIZE as B
from inglenook.engine.loaded_model import LoadedModel
from inglenook.engine.request import LoadOptions, Request, SamplingParams
from inglenook.engine.scheduler import Scheduler
from inglenook.engine.sequence import Sequence
from inglenook.engine.step_cost import StepCost
from inglenook.engine.torch_backend import TorchBackend

T = 60.0


@pytest.fixture
def client(tiny_client):
    return tiny_client


@pytest.fixture(scope="module")
def drafting(tiny):
    """A client that guesses wherever text repeats, whatever the time it costs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TorchBackend, "rows_are_exact", True)
        patch.setattr(StepCost, "ratio", lambda self, rows, fewer: 1.0)
        with EngineClient.in_process() as client:
            client.load(tiny, options=options()).result(T)
            yield client


def options(**changes):
    return LoadOptions(**{"backend": "reference", "num_threads": 1} | changes)


def ask(length=40, first=3, **params):
    params = {"temperature": 0, "max_tokens": 12, "ignore_eos": True} | params
    ids = tuple(3 + (first + 7 * i) % 250 for i in range(length))
    return Request(prompt_token_ids=ids, sampling=SamplingParams(**params))


def test_the_table_names_tests_that_exist():
    folder = Path(__file__).parent.parent
    defined = set(re.findall(r"def (test_\w+)", "".join(p.read_text() for p in folder.glob("**/test_*.py"))))

    assert set(re.findall(r"test_\w+", __doc__)) <= defined


@pytest.mark.parametrize("length", [1, 2, B - 1, B, B + 1, 2 * B - 1, 2 * B, 2 * B + 1, 100])
def test_a_prompt_of_any_length_asked_again_is_answered_alike(client, length):
    first, second, third = (client.submit(ask(length, first=length)).result(T) for _ in range(3))

    assert first.token_ids == second.token_ids == third.token_ids
    assert second.finished.cached_tokens == length - 1


@pytest.mark.parametrize("count", [1, 2, 5, 9, 14])
def test_a_reply_cut_anywhere_loses_no_text(client, count):
    """By its limit, by a stop token or by Stop: what is shown begins the whole text, and no control token shows."""
    whole = client.submit(ask(max_tokens=40)).result(T)
    stop = whole.token_ids[count]

    limited = client.submit(ask(max_tokens=count)).result(T)
    stopped = client.submit(ask(max_tokens=40, stop_token_ids=(stop,), stop=("\0never",))).result(T)
    handle = client.submit(ask(max_tokens=400))
    next(handle.events(T))
    handle.cancel()
    cancelled = handle.result(T)

    ids = whole.token_ids
    assert limited.token_ids == ids[:count]
    assert stopped.token_ids == ids[: ids.index(stop)]
    assert cancelled.token_ids[: len(ids)] == ids[: len(cancelled.token_ids)]
    for reply in (limited, stopped, cancelled):
        assert whole.text.startswith(reply.text.rstrip("\ufffd")[:20])
        assert "<|im_end|>" not in reply.text


def test_blocks_evicted_between_arrival_and_start_are_not_used():
    scheduler = Scheduler(KVBlocks((0,), (4,), "model"), max_step_tokens=64)
    old, other = Sequence(1, list(range(3 * B)), 3 * B), Sequence(2, [-t for t in range(1, 4 * B)], 4 * B - 1)
    scheduler.add(old)
    scheduler.commit(scheduler.plan())
    scheduler.remove(old)
    again = Sequence(3, list(range(3 * B)), 3 * B)
    scheduler.add(other)
    scheduler.commit(scheduler.plan())  # needs all blocks, those of `old` too
    scheduler.add(again)  # its prefix was there when it was asked, say
    scheduler.remove(other)

    plan = scheduler.plan()

    assert [(c.sequence.id, c.start) for c in plan.chunks] == [(3, 0)]
    assert again.cached_tokens == 0


@pytest.fixture(scope="module")
def quantised(tmp_path_factory):
    if not backend_statuses()[0].usable:
        pytest.skip(backend_statuses()[0].reason)
    return write_tiny_gguf(tmp_path_factory.mktemp("model") / "tiny.gguf", quantize="Q8_0")


def test_logprobs_are_the_same_over_a_cached_prefix(quantised):
    with EngineClient.in_process() as client:
        client.load(quantised, options=options(backend="native-cpu")).result(T)
        cold, warm = (list(client.submit(ask(50, logprobs=3)).events(T)) for _ in range(2))

    def logprobs(events):
        return [p for event in events[:-1] for p in event.logprobs]

    assert warm[-1].cached_tokens == 49
    assert logprobs(cold) == logprobs(warm)
    assert len(logprobs(cold)) == 12


@pytest.mark.parametrize("params", [{}, {"temperature": 0.9, "seed": 5}], ids=["greedy", "seeded"])
def test_a_reply_over_an_int8_cache_is_the_same_cold_warm_and_crowded(quantised, params):
    asked = ask(90, max_tokens=48, **params)
    with EngineClient.in_process() as client:
        facts = client.load(quantised, options=options(backend="native-cpu", kv_dtype="int8")).result(T)
        wide = client.load(quantised, "wide", options(backend="native-cpu", kv_dtype="float16")).result(T)
        cold, warm = (client.submit(asked).result(T) for _ in range(2))
        crowd = [client.submit(ask(30, first=n, max_tokens=60)) for n in range(6)]
        crowded = client.submit(asked).result(T)
        for handle in crowd:
            handle.result(T)
    with EngineClient.in_process() as client:
        client.load(
            quantised, options=options(backend="native-cpu", kv_dtype="int8", max_step_tokens=7)
        ).result(T)
        chunked = client.submit(asked).result(T)

    assert cold.token_ids == warm.token_ids == crowded.token_ids == chunked.token_ids
    assert warm.finished.cached_tokens == 89
    assert facts.kv_bytes < 0.75 * wide.kv_bytes  # the heads are small here, so scales weigh


def test_fifty_prompts_are_answered_alike_with_and_without_drafts(client, drafting):
    letters = dict.fromkeys(range(70, 75), 50.0)
    requests = [
        ask(30 + n, first=n, temperature=n % 2, seed=n, max_tokens=24, logit_bias=letters) for n in range(50)
    ]
    plain = [h.result(T).token_ids for h in [client.submit(r) for r in requests]]

    replies = [h.result(T) for h in [drafting.submit(r) for r in requests]]

    assert [reply.token_ids for reply in replies] == plain
    assert sum(reply.finished.drafted_tokens for reply in replies) > 50


LETTERS = dict.fromkeys(range(70, 73), 50.0)


@pytest.mark.parametrize(
    "params",
    [
        {"logit_bias": LETTERS | {74: -100.0}, "stop_token_ids": (72,)},
        {"logit_bias": LETTERS, "stop": ("DED", "EDE")},
        {"logit_bias": LETTERS, "max_tokens": 37},
        {"logit_bias": LETTERS, "repetition_penalty": 1.3, "presence_penalty": 0.5},
        {"logit_bias": LETTERS, "frequency_penalty": 1.9, "n": 3},
        {"logit_bias": LETTERS | {2: 49.0}, "ignore_eos": False},
        {"top_k": 2, "logprobs": 2},
    ],
    ids=str,
)
@pytest.mark.parametrize("temperature", [0, 1.0])
def test_what_is_forbidden_and_what_ends_a_reply_hold_within_drafts(client, drafting, params, temperature):
    """Every state that a token changes (penalties, stops, limits, the cache) is as if there were no drafts."""
    asked = ask(60, **{"temperature": temperature, "seed": 4, "max_tokens": 60} | params)

    def told(who):
        *pieces, end = client_events(who, asked)
        ids = [(piece.choice, t) for piece in pieces for t in piece.token_ids]
        logprobs = [p for piece in pieces for p in piece.logprobs]
        return sorted(ids, key=lambda pair: pair[0]), logprobs, end.finish_reasons, end.completion_tokens

    plain, guessed = told(client), told(drafting)
    follow_up = ask(1).prompt_token_ids
    after = [
        who.submit(Request(prompt_token_ids=asked.prompt_token_ids + tuple(t for c, t in plain[0] if not c)
                           + follow_up, sampling=SamplingParams(temperature=0, max_tokens=8))).result(T)
        for who in (client, drafting)
    ]  # fmt: skip

    assert guessed == plain
    assert after[0].token_ids == after[1].token_ids
    assert drafting.stats().values["chat.kv_blocks_live"] == 0


def client_events(client, request):
    return list(client.submit(request).events(T))


def test_drafts_were_made_while_that_was_tested(drafting):
    drafting.submit(ask(60, logit_bias=LETTERS, max_tokens=60)).result(T)

    assert drafting.stats().values["chat.spec_decode_num_accepted_tokens"] > 0


def say(length, **more):
    messages = [{"role": role, "content": "x" * length} for role in ("user", "assistant") * 2]
    return Request(messages=(*messages, {"role": "user", "content": "x" * 20}), **more)


@pytest.mark.parametrize("over", [-1, 0, 1, 5])
def test_around_the_limit_each_policy_does_what_it_says(client, over):
    """`over` tokens beyond the context: refused with its numbers, or the fewest turns left out and named."""
    length = client.submit(say(60, sampling=SamplingParams(max_tokens=0))).result(T).finished.prompt_tokens
    reply = SamplingParams(max_tokens=CONTEXT - length + over, temperature=0)

    kept = client.submit(say(60, sampling=reply, overflow="drop_oldest")).result(T).finished

    if over > 0:
        numbers = (
            rf"prompt has {length} tokens and the reply may take {CONTEXT - length + over} tokens.* {CONTEXT}"
        )
        with pytest.raises(ContextLengthError, match=numbers):
            client.submit(say(60, sampling=reply)).result(T)
        assert kept.left_out == (0, 1)
        assert kept.prompt_tokens < length
    else:
        assert client.submit(say(60, sampling=reply)).result(T).finished.prompt_tokens == length
        assert (kept.left_out, kept.prompt_tokens) == ((), length)


@pytest.mark.parametrize("overflow", ["refuse", "drop_oldest"])
@pytest.mark.parametrize("role", ["system", "user"])
def test_a_passage_longer_than_the_context_is_refused_with_its_numbers(client, overflow, role):
    """Three times the context in one message: there is nothing to leave out, so nothing is cut or answered."""
    messages = ({"role": role, "content": "x" * 3 * CONTEXT}, {"role": "user", "content": "Why?"})
    if role == "user":
        messages = messages[:1]

    with pytest.raises(
        ContextLengthError, match=rf"prompt has 1,5\d\d tokens .* at least 1 token, .* {CONTEXT}"
    ):
        client.submit(Request(messages=messages, overflow=overflow)).result(T)

    assert client.submit(ask()).result(T).finished.finish_reason == "length"


@pytest.mark.parametrize(
    ("load", "message"),
    [
        ({"backend": "reference", "kv_dtype": "int8"}, "kv_dtype must be float32 on reference, got 'int8'"),
        ({"backend": "torch-cpu", "kv_dtype": "float16"}, "kv_dtype must be bfloat16 on torch-cpu"),
        ({"backend": "fastest"}, "backend must be auto, .*; got 'fastest'"),
        (
            {"backend": "reference", "context_length": CONTEXT + 1},
            "at most 512, the limit of tiny.gguf; got 513",
        ),
        ({"backend": "cuda:exact"}, "cuda can be .*cuda:deterministic.*, got cuda:exact"),
    ],
)
def test_what_the_engine_cannot_keep_is_refused(client, tiny, load, message):
    with pytest.raises(InvalidRequestError, match=message):
        client.load(tiny, "other", LoadOptions(num_threads=1, **load)).result(T)


@pytest.mark.parametrize(
    "params", [{"stop_token_ids": (260,)}, {"logit_bias": {260: 1.0}}], ids=lambda p: next(iter(p))
)
def test_token_ids_that_the_model_does_not_have_are_refused(client, params):
    with pytest.raises(InvalidRequestError, match=rf"{next(iter(params))}.* must be 0 to 259, got 260"):
        client.submit(ask(**params)).result(T)


@pytest.mark.parametrize(("prompt", "reply"), [(0.7, 0.3), (0.4, 0.5)], ids=["wait", "give way and resume"])
@pytest.mark.slow
def test_long_chats_that_do_not_fit_together_are_all_answered(tiny, monkeypatch, prompt, reply):
    monkeypatch.setattr(memory_plan, "_SPARE_CONTEXTS", 1)
    length, most = int(prompt * CONTEXT), int(reply * CONTEXT)
    requests = [ask(length, first=n, max_tokens=most) for n in range(3)]
    with EngineClient.in_process() as client:
        client.load(tiny, options=options()).result(T)
        alone = [client.submit(request).result(T).token_ids for request in requests]
        together = [h.result(T) for h in [client.submit(request) for request in requests]]
        preemptions = client.stats().values["chat.num_preemptions"]

    assert [reply.token_ids for reply in together] == alone
    assert {len(reply.token_ids) for reply in together} == {most}
    assert (preemptions > 0) is (prompt < 0.5)


def test_a_swap_of_models_counts_the_old_one_as_gone(tiny, monkeypatch):
    steps, close, load_model = [], LoadedModel.close, core.load_model
    monkeypatch.setattr(LoadedModel, "close", lambda model: (steps.append("closed"), close(model)))

    def note_and_load(*arguments):
        with arguments[4].deciding("another") as promised:
            steps.append(f"memory is looked at, {promised} bytes are promised")
        return load_model(*arguments)

    monkeypatch.setattr(core, "load_model", note_and_load)
    with EngineClient.in_process() as client:
        for _ in range(2):
            client.load(tiny, options=options()).result(T)

    assert steps[:3] == [
        "memory is looked at, 0 bytes are promised",
        "closed",
        "memory is looked at, 0 bytes are promised",
    ]
