"""The blocking form of buckets."""

from pathlib import Path

import pytest

from jetlake.errors import ClientError, ConflictError, NotFoundError
from jetlake.kv import BucketConfig, Operation, sync


def test_everything_is_there_without_an_event_loop(url, name, tmp_path: Path):
    with sync.connect(url) as buckets:
        bucket = buckets.create(BucketConfig(bucket=name, history=5), str)
        first = bucket.create("a", "1")
        second = bucket.update("a", "2", first)
        with pytest.raises(ConflictError):
            bucket.create("a", "3")
        assert bucket.put("b", "x") == second + 1
        assert bucket.get("a").value == "2"
        assert bucket.get("a", revision=first).value == "1"
        assert bucket.find("none") is None
        assert sorted(bucket.keys()) == ["a", "b"]
        assert [entry.value for entry in bucket.entries("b")] == ["x"]
        assert [entry.value for entry in bucket.history("a")] == ["1", "2"]
        with bucket.watch() as entries:
            assert [(entry.key, entry.value) if (entry := next(entries)) else None for _ in range(3)] == [
                ("a", "2"),
                ("b", "x"),
                None,
            ]
            bucket.delete("b")
            assert next(entries).operation is Operation.DELETE
        bucket.revert("a", first)
        bucket.purge("b")
        assert bucket.compact(older_than_s=0) == 1
        assert bucket.status().values == buckets.status(name).values == 3
        assert name in buckets.names()
        assert name in [status.bucket for status in buckets.list()]
        buckets.backup(name, tmp_path / "saved")
        assert bucket.clear() == 3
        assert buckets.open(name, str).name == bucket.name == name
        assert buckets.update(BucketConfig(bucket=name, history=6)).config.history == 6
        buckets.delete(name)
        assert buckets.restore(tmp_path / "saved").values == 3
        with pytest.raises(NotFoundError):
            buckets.open("NONE")


def test_a_server_that_is_not_there_is_told():
    with pytest.raises(ClientError, match="cannot connect"), sync.connect("nats://127.0.0.1:1"):
        pass
