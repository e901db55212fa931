"""The benchmark of stalls: its table, and a short run of its cases on our server."""

from pathlib import Path

import pytest

from benchmarks.servers import JETLAKE, commands
from benchmarks.stalls import BATCH, CASES, Row, middle, servers, table
from benchmarks.stream_servers import StreamServer


def test_table_has_a_line_for_each_row_and_the_cost_only_where_it_was_measured() -> None:
    rows = [
        Row("purge", "jetlake", 1_500_000, 231.4, 8.04, 1.0),
        Row("source", "nats-server", 1_500_000, 12_000.0, 90.0, 2.26, 13_600.0),
    ]

    assert table(rows).splitlines()[2:] == [
        "| purge | jetlake | 1,500,000 | 231 | 8.0 | 1.0 |  |",
        "| source | nats-server | 1,500,000 | 12,000 | 90.0 | 2.3 | 13,600 |",
    ]


def test_medians_of_all_repeats_count() -> None:
    repeats = [Row("source", "s", 10, 9.0, 5.0, 4.0, 30.0), Row("source", "s", 10, 7.0, 7.0, 3.0, 20.0)]

    assert middle(repeats) == Row("source", "s", 10, 8.0, 6.0, 3.5, 25.0)
    assert middle([Row("purge", "s", 10, 9.0, 5.0, 4.0)]) == Row("purge", "s", 10, 9.0, 5.0, 4.0)


def test_older_build_takes_part_where_its_folder_is_named() -> None:
    assert list(servers(None)) == list(commands())

    started = servers(Path("/older"))

    assert list(started) == [f"{JETLAKE} before", *commands()]
    assert "PYTHONPATH=/older" in started[f"{JETLAKE} before"]


@pytest.mark.parametrize("case", CASES)
def test_case_is_measured(case: str, tmp_path: Path) -> None:
    with StreamServer(JETLAKE, commands()[JETLAKE], tmp_path) as server:
        row = CASES[case](server, BATCH)

    assert (row.server, row.messages) == (JETLAKE, BATCH)
    assert row.took_ms > 0
    assert row.ping_ms_max > 0
    assert (row.cpu_us_per_publish is not None) == (case == "source")
