"""The flags all commands take: they may stand anywhere."""

import pytest

from jetlake.cli.invocation import UsageError, hoist


def test_flags_are_taken_from_anywhere_on_the_line():
    first, rest_first = hoist(["--server", "nats://a", "stream", "ls", "-n"])
    last, rest_last = hoist(["stream", "ls", "-n", "-s=nats://a"])

    assert first.options == last.options == {"url": "nats://a"}
    assert rest_first == rest_last == ["stream", "ls", "-n"]


def test_switches_take_no_second_word():
    invocation, rest = hoist(["--tlsfirst", "stream", "--no-color", "ls", "--context", "prod"])

    assert (invocation.options, invocation.color, invocation.context) == ({"tls_first": True}, False, "prod")
    assert rest == ["stream", "ls"]


def test_a_switch_can_be_turned_off():
    invocation, _ = hoist(["--tlsfirst=false", "rtt"])

    assert invocation.options == {"tls_first": False}


def test_two_dashes_end_the_flags():
    invocation, rest = hoist(["pub", "x", "--", "--server", "text"])

    assert invocation.options == {}
    assert rest == ["pub", "x", "--", "--server", "text"]


def test_flag_without_its_value_is_refused():
    with pytest.raises(UsageError, match="--server needs a value"):
        hoist(["stream", "ls", "--server"])
