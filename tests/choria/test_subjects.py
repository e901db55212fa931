"""Node names in subjects: whatever a node is called, the subject is one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jetlake.choria.subjects import expand, is_publishable, is_subscribable


@pytest.mark.parametrize(
    ("sender", "subject"),
    [
        ("web1.ldn.example.net", "choria.node.web1.ldn.example.net"),
        ("", "choria.node._"),
        ("a b", "choria.node.a_b"),
        ("*", "choria.node._"),
        ("a.>", "choria.node.a._"),
        (".a..b.", "choria.node._.a._.b._"),
        ("x\r\nPUB evil 0\r\n", "choria.node.x__PUB_evil_0__"),
        ("žába", "choria.node.žába"),
    ],
)
def test_the_sender_is_made_safe(sender, subject):
    assert expand("choria.node.%s", sender) == subject


def test_every_place_is_filled():
    assert expand("a.%s.b.%s", "n") == "a.n.b.n"
    assert expand("a.b", "n") == "a.b"


@given(st.text())
def test_no_name_makes_a_subject_that_cannot_be_published_to(sender):
    subject = expand("choria.%s.metadata", sender)

    assert is_publishable(subject)
    assert subject.encode().decode() == subject
    assert len(subject.encode()) < 2_000


@pytest.mark.parametrize("subject", ["a", "a.b", "a.*.b", "a.>", ">", "*"])
def test_a_subject_can_be_subscribed_to(subject):
    assert is_subscribable(subject)


@pytest.mark.parametrize("subject", ["", "a..b", ".a", "a b", "a.>.b", "a*", "a\r\n"])
def test_what_is_no_subject_cannot_be_subscribed_to(subject):
    assert not is_subscribable(subject)
