"""Which cards and layers a model gets, from sizes and free memory alone."""

from random_models import RandomModel, small_spec

from inglenook.engine.cards.placement import CARD_RUNTIME_BYTES, CardNeed, CardOptions, card_need, place
from inglenook.engine.kv_cache import kv_groups

GB = 10**9
# ten layers of 1 GB, a head of 2, an embedding of 1
NEED = CardNeed((GB,) * 10, 2 * GB, GB, runtime=GB)
FREE = CardOptions()


def test_one_card_that_holds_all_of_it_is_enough() -> None:
    placement = place(NEED, [14 * GB, 80 * GB], FREE)

    assert (placement.num_cards, placement.card_layers) == (1, 10)
    assert placement.reason == "it needs 14.0 GB, and 14.0 GB of the card are free"


def test_as_few_cards_as_hold_it_together_come_next() -> None:
    two = place(NEED, [8 * GB, 8 * GB, 8 * GB], FREE)
    three = place(NEED, [6 * GB, 7 * GB, 7 * GB], FREE)

    assert (two.num_cards, two.card_layers) == (2, 10)
    assert "2 cards hold it together" in two.reason
    assert three.num_cards == 3


def test_else_the_last_layers_go_on_the_card_as_many_as_fit() -> None:
    placement = place(NEED, [7 * GB], FREE)

    assert (placement.num_cards, placement.card_layers) == (1, 4)  # 4 layers, head and runtime
    assert (
        placement.reason
        == "it needs 14.0 GB, and 7.0 GB of the card are free: 4 of 10 layers are on the card, the rest on the processor"
    )


def test_a_card_that_holds_no_layer_is_not_used() -> None:
    placement = place(NEED, [3 * GB], FREE)

    assert placement.num_cards == 0
    assert "too few for one layer" in placement.reason


def test_whoever_asks_for_numbers_gets_them() -> None:
    assert place(NEED, [80 * GB], CardOptions(num_cards=2)).num_cards == 2
    assert place(NEED, [80 * GB], CardOptions(card_layers=3)).card_layers == 3
    one_card = place(NEED, [7 * GB, 80 * GB], CardOptions(num_cards=1))
    assert (one_card.num_cards, one_card.card_layers) == (1, 4)


def test_what_a_model_needs_is_its_file_and_its_cache() -> None:
    tied, untied = small_spec(), small_spec(tied_head=False)
    context = 64

    for spec in (tied, untied):
        source = RandomModel(spec, lambda name: "Q8_0")
        need = card_need(spec, source, "float16", context)
        cache = 4 * kv_groups(spec, "float16")[0].block_bytes
        norm = source.tensor("output_norm").size_bytes
        assert need.whole - need.runtime == source.size_bytes - norm + cache // 3 * 3
        # a part has the head, and the embedding only where that is the head
        assert need.part(1) - need.runtime == need.layers[2] + need.head
    assert card_need(tied, RandomModel(tied, lambda name: "Q8_0"), "float16", None).layers[0] > need.layers[0]


def test_what_the_check_before_loading_counts_is_counted_here_too() -> None:
    spec = small_spec()
    source = RandomModel(spec, lambda name: "F32")
    loaded = 2 * spec.num_parameters

    need = card_need(spec, source, "float16", 64, alone_bytes=loaded + 10**9)

    assert abs(need.runtime - 10**9) < 10_000  # but for the norms
    assert card_need(spec, source, "float16", 64).runtime == CARD_RUNTIME_BYTES
