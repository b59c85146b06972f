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
    V17 a prompt that is cached whole            test_a_prompt_of_any_length_asked_again_is_answered_alike
    V18 hits counted before blocks are held      test_blocks_evicted_between_arrival_and_start_are_not_used
    V19 log-probabilities over a cached prefix   test_logprobs_are_the_same_over_a_cached_prefix
    V21 a block lost with each request           test_two_thousand_requests_with_random_cancels_leak_nothing
    V22 a cancel while a step runs               test_whatever_makes_the_only_request_pointless_ends_its_step
    V23 preemption repeats or drops tokens       test_preemption_changes_nothing_and_no_block_leaks
    V26 a row that sees nothing                  test_a_padded_row_of_a_graph_gives_zeros_and_reads_nothing
    V29 scales of the KV cache lost              test_a_reply_over_an_int8_cache_is_the_same_cold_warm_and_crowded
    V30 windows and cached prefixes              test_a_hit_needs_only_what_the_next_token_sees
    V31 n equal texts from one seed              test_several_choices_differ_and_each_equals_itself_alone
    V33 rejected drafts leave traces             test_speculation_changes_no_token_and_saves_steps
    V35 T near 0                                 test_a_tiny_temperature_does_not_overflow
    V37 top-p drops the token that crosses       test_top_p_keeps_the_token_that_crosses_it
    V38 an empty prompt ends the engine          test_an_empty_prompt_is_refused_and_others_go_on
    V39 max_tokens 0                             test_no_new_tokens_is_legal_and_only_prefills
    D1  a reply that mentions a control token    test_look_alikes_in_text_are_ordinary_text
    D2  control tokens shown, also after Stop    test_a_reply_cut_anywhere_loses_no_text
    D3  greedy runs that differ                  test_a_prompt_of_any_length_asked_again_is_answered_alike
    D9  an overflow of 5 tokens loses half       test_the_fewest_oldest_turns_are_left_out
    D10 the system prompt is lost                test_system_and_pinned_turns_and_the_last_turn_stay
    D11 each overflow ends differently           test_the_engine_refuses_by_default_and_loses_nothing
    D14 two long chats at once                   test_long_chats_that_do_not_fit_together_are_all_answered
    D17 cold, warm and batched answers differ    test_batch_mates_change_nothing
    D18 drafting changes answers                 test_fifty_prompts_are_answered_alike_with_and_without_drafts
    D19 drafting slows                           test_no_text_costs_more_than_the_budget
    D21 endless nonsense                         test_logits_that_are_not_numbers_fail_that_request_alone
    D22 a swap counts the old model too          test_a_swap_of_models_counts_the_old_one_as_gone
    D23 refusals without numbers                 test_what_does_not_fit_is_refused_with_the_two_numbers
    D25 work goes on for nobody                  test_a_parent_that_ends_in_any_way_leaves_no_orphan
    D26 parallel requests halve the context      test_long_chats_that_do_not_fit_together_are_all_answered
"""

import re
from pathlib import Path

import pytest
from tiny_gguf import CONTEXT, write_tiny_gguf

from inglenook.engine import core
from inglenook.engine.backend_choice import backend_statuses
from inglenook.engine.client import EngineClient
from inglenook.engine.kv_blocks import KVBlocks
from inglenook.engine.kv_cache import BLOCK_SIZE as B
from inglenook.engine.loaded_model import LoadedModel
from inglenook.engine.request import LoadOptions, Request, SamplingParams
from inglenook.engine.scheduler import Scheduler
from inglenook.engine.sequence import Sequence
from inglenook.engine.step_cost import StepCost
from inglenook.engine.torch_backend import TorchBackend

T = 60.0


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return write_tiny_gguf(tmp_path_factory.mktemp("model") / "tiny.gguf")


@pytest.fixture(scope="module")
def client(tiny):
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


def test_fifty_prompts_are_answered_alike_with_and_without_drafts(tiny, client, monkeypatch):
    letters = dict.fromkeys(range(70, 75), 50.0)
    requests = [
        ask(30 + n, first=n, temperature=n % 2, seed=n, max_tokens=24, logit_bias=letters) for n in range(50)
    ]
    plain = [h.result(T).token_ids for h in [client.submit(r) for r in requests]]
    monkeypatch.setattr(TorchBackend, "rows_are_exact", True)
    monkeypatch.setattr(StepCost, "ratio", lambda self, rows, fewer: 1.0)

    with EngineClient.in_process() as drafting:
        drafting.load(tiny, options=options()).result(T)
        replies = [h.result(T) for h in [drafting.submit(r) for r in requests]]

    assert [reply.token_ids for reply in replies] == plain
    assert sum(reply.finished.drafted_tokens for reply in replies) > 50


def test_long_chats_that_do_not_fit_together_are_all_answered(tiny, monkeypatch):
    from inglenook.engine import memory_plan

    monkeypatch.setattr(memory_plan, "_SPARE_CONTEXTS", 1)
    most = int(0.7 * CONTEXT)
    requests = [ask(most, first=n, max_tokens=CONTEXT - most) for n in range(3)]
    with EngineClient.in_process() as client:
        client.load(tiny, options=options()).result(T)
        alone = [client.submit(request).result(T).token_ids for request in requests]
        together = [h.result(T) for h in [client.submit(request) for request in requests]]
        preemptions = client.stats().values["chat.num_preemptions"]

    assert [reply.token_ids for reply in together] == alone
    assert {len(reply.token_ids) for reply in together} == {CONTEXT - most}
    assert preemptions > 0


def test_a_swap_of_models_counts_the_old_one_as_gone(tiny, monkeypatch):
    steps, close, load_model = [], LoadedModel.close, core.load_model
    monkeypatch.setattr(LoadedModel, "close", lambda model: (steps.append("closed"), close(model)))

    def note_and_load(*arguments):
        steps.append(f"memory is looked at, {arguments[4]} bytes are promised")
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
