"""Durations, sizes and addresses."""

import pytest

from jetlake.server.configuration.quantities import host_and_port, quoted_size
from jetlake.shared.durations import go_duration_ns as duration_ns


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("0", 0),
        ("1ns", 1),
        ("2us", 2_000),
        ("2µs", 2_000),
        ("2μs", 2_000),
        ("300ms", 300_000_000),
        ("1.5s", 1_500_000_000),
        (".5s", 500_000_000),
        ("2m30s", 150_000_000_000),
        ("1h1m1s", 3_661_000_000_000),
        ("-1s", -1_000_000_000),
        ("+1s", 1_000_000_000),
    ],
)
def test_duration_is_read_as_go_reads_it(text, nanoseconds):
    assert duration_ns(text) == nanoseconds


@pytest.mark.parametrize("text", ["", "-", "5", "5 s", "s", "1d", "1s2", "x1s", "1.s.", "1e3s", "9999999h"])
def test_what_is_no_duration_is_refused(text):
    with pytest.raises(ValueError, match=r"^(is|has) "):
        duration_ns(text)


@pytest.mark.parametrize(
    ("text", "size"), [("", 0), ("64K", 65536), ("2M", 2 << 20), ("1G", 1 << 30), ("-1T", -(1 << 40))]
)
def test_size_in_quotes_has_powers_of_1024(text, size):
    assert quoted_size(text) == size


@pytest.mark.parametrize("text", ["64", "64k", "64MB", "M", "1.5M", "x", "999999999999999999T"])
def test_what_is_no_size_is_refused(text):
    with pytest.raises(ValueError, match=r"^is "):
        quoted_size(text)


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [("127.0.0.1:4222", "127.0.0.1", 4222), (":-1", "", -1), ("[::1]:4222", "::1", 4222), ("a.b:0", "a.b", 0)],
)
def test_address_is_host_and_port(text, host, port):
    assert host_and_port(text) == (host, port)


@pytest.mark.parametrize("text", ["", "a", "a:", "a:b", "::1:4222", "[::1]", "[::1:4222", "a:1:2"])
def test_what_is_no_address_is_refused(text):
    with pytest.raises(ValueError, match=r"^(is|has) "):
        host_and_port(text)
