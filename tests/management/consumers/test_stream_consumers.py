"""The consumers of one stream: names in order, counts, and filters."""

import random

from jetlake.management.consumers.config import ConsumerConfig
from jetlake.management.consumers.stream_consumers import Consumer, StreamConsumers
from jetlake.management.subjects.names import collide
from tests.effort import assert_linear


def consumer(name: str, **config: object) -> Consumer:
    return Consumer(name=name, config=ConsumerConfig(**config), created="then")


def test_names_are_in_order_and_those_of_direct_consumers_hidden():
    consumers = StreamConsumers()
    for name in "cab":
        consumers.put(consumer(name))
    consumers.put(consumer("hidden", direct=True))
    consumers.put(consumer("copy", sourcing=True))

    assert consumers.public_names == ["a", "b", "c", "copy"]
    assert (len(consumers), consumers.counted) == (5, 3)
    consumers.put(consumer("b", description="other"))
    assert consumers["b"].config.description == "other"
    for name in ("b", "hidden", "copy"):
        consumers.remove(name)
    assert (consumers.public_names, len(consumers), consumers.counted) == (["a", "c"], 2, 2)


def test_filters_are_taken_exactly_when_comparing_all_says_so():
    chance = random.Random(7)
    tokens = ["a", "b", "*"]
    consumers = StreamConsumers()
    filters: dict[str, tuple[str, ...]] = {}
    for _ in range(500):
        name = chance.choice("ABCDE")
        if name in filters and chance.random() < 0.5:
            consumers.remove(name)
            del filters[name]
        else:
            count = chance.choice([0, 1, 1, 2])
            subjects = tuple(".".join(chance.choices(tokens, k=2)) + chance.choice(["", ".>"]) for _ in range(count))
            filters[name] = subjects
            consumers.put(consumer(name, filter_subjects=subjects))
        asked = (".".join(chance.choices(tokens, k=2)),)
        others = [each for other, each in filters.items() if other != "A"]
        expected = any(not each or any(collide(asked[0], subject) for subject in each) for each in others)
        assert consumers.are_taken(asked, "A") == expected
    assert not consumers.are_taken((), "A")


def test_internal_consumers_take_nothing():
    consumers = StreamConsumers()
    consumers.put(consumer("copy", sourcing=True))

    assert not consumers.are_taken(("a",), "A")
    consumers.put(consumer("hidden", direct=True, filter_subject="a"))
    assert not consumers.are_taken(("a",), "A")


def test_effort_of_adding_consumers_grows_with_their_number():
    def additions(count):
        consumers = StreamConsumers()

        def add() -> None:
            for number in range(count):
                filters = (f"orders.{number}.>",)
                assert not consumers.are_taken(filters, "")
                consumers.put(consumer(f"C{number}", filter_subjects=filters))

        return add

    additions(10_000)()
    assert_linear(additions, 500)


def test_definition_is_what_the_engine_keeps():
    assert consumer("C", filter_subject="a.>").definition == (
        b'{"name":"C","config":{"deliver_policy":"all","ack_policy":"none","filter_subject":"a.\\u003e",'
        b'"replay_policy":"instant","num_replicas":0},"created":"then"}'
    )
