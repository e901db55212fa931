"""The start-up lines."""

import pytest

from jetlake.server import banner


def test_lines_of_both_generations_come_in_order():
    lines = [
        *banner.version_lines(version="2.15.1", git_commit="abc"),
        *banner.identity_lines(server_name="", server_id="NAB"),
        "Starting JetStream",
        *banner.jetstream_lines(store_path="/data/jetstream", memory_bytes_max=3 << 30, storage_bytes_max=1 << 40),
        *banner.listening_lines(host="0.0.0.0", port=4222, server_id="NAB"),
        banner.READY_LINE,
    ]

    expected = [
        "Starting nats-server version 2.15.1",
        "Git commit [abc]",
        "Starting JetStream",
        "----------- JETSTREAM (Beta) -----------",
        "  Max Memory:      3.00 GB",
        "  Max Storage:     1.00 TB",
        '  Store Directory: "/data/jetstream"',
        "----------------------------------------",
        "Listening for client connections on 0.0.0.0:4222",
        "Server id is NAB",
        "Server is ready",
    ]
    assert [line for line in lines if line in expected] == expected
    assert {"  Version:  2.15.1", "  Name:     NAB", "  ID:       NAB"} <= set(lines)


def test_given_name_is_shown_instead_of_the_id():
    assert "  Name:     ada" in banner.identity_lines(server_name="ada", server_id="NAB")


def test_ipv6_address_is_put_in_brackets():
    assert banner.join_address("::1", 4222) == "[::1]:4222"
    assert banner.join_address("localhost", 1) == "localhost:1"


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.00 KB"), (18_951_549_378, "17.65 GB"), (1 << 60, "1.00 EB")],
)
def test_sizes_are_written_as_nats_server_writes_them(count, text):
    assert banner.readable_bytes(count) == text


def test_shares_of_memory_and_disk_are_positive(tmp_path):
    assert banner.memory_bytes_max() > 0
    assert banner.storage_bytes_max(str(tmp_path)) > 0
    assert banner.storage_bytes_max(str(tmp_path / "missing")) == 1 << 40
