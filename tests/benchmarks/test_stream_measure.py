"""Each kind of measurement of streams, in small, at our server alone. What it takes is nobody's business here."""

import pytest

from benchmarks.servers import JETLAKE, BenchmarkError, commands
from benchmarks.stream_measure import StreamBench
from benchmarks.stream_servers import StreamServer, create_stream, stream_state
from benchmarks.stream_workloads import StreamLoad, StreamWorkload
from benchmarks.workloads import CPU, OPEN, P50, P99, RATE


def bench(kind, folder, **shape):
    workload = StreamWorkload("small", "in small", kind, (RATE,), (), StreamLoad(**shape))
    own = {JETLAKE: commands()[JETLAKE]}
    return StreamBench(workload, own, folder, seconds=0.01, open_messages=2_000, natscli=None)


def test_load_is_measured_and_leaves_nothing(tmp_path):
    with bench("store", tmp_path, connections=2, in_flight=100, atomic_batch=70) as small:
        first = small.measure(JETLAKE)
        second = small.measure(JETLAKE)

    assert set(first) == set(second) == {RATE, CPU, P50, P99}
    assert all(value > 0 for value in first.values())
    assert not list(tmp_path.iterdir())


def test_server_is_opened_again_after_each_kill(tmp_path):
    with bench("open after kill", tmp_path, subjects=10) as small:
        opened = [small.measure(JETLAKE) for _ in range(2)]

    assert [set(metrics) for metrics in opened] == [{OPEN}, {OPEN}]


def test_refused_request_says_what_the_server_answered(tmp_path):
    with StreamServer(JETLAKE, commands()[JETLAKE], tmp_path) as server:
        create_stream(server)

        with pytest.raises(BenchmarkError, match=r"jetlake answers STREAM\.CREATE\.BENCH with .*10058"):
            create_stream(server, max_msgs=1)

        assert stream_state(server)["messages"] == 0
