"""Buckets and object stores that the libraries made are exported as what they are, and planned without a change."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import jetlake
from jetlake.cli.app import create
from jetlake.kv import BucketConfig, Origin, Republish
from jetlake.kv import sync as kv
from jetlake.objects import StoreConfig
from jetlake.objects import sync as objects

BUCKETS = (
    BucketConfig(bucket="PLAIN"),
    BucketConfig(bucket="CFG", history=5, max_value_bytes=10240, description="settings"),
    BucketConfig(bucket="SHORT", ttl_s=30, storage="memory", key_ttl=False),
    BucketConfig(bucket="FULL", max_bytes=1 << 20, limit_marker_ttl_s=60, compression=True),
    BucketConfig(bucket="LOUD", republish=Republish(destination="loud.>")),
    BucketConfig(bucket="COPY", mirror=Origin(bucket="CFG")),
    BucketConfig(bucket="SUM", sources=(Origin(bucket="CFG"), Origin(bucket="PLAIN"))),
)
STORES = (StoreConfig(store="FILES"), StoreConfig(store="OLD", ttl_s=3600, compression=True, max_bytes=1 << 20))


@pytest.fixture
def server():
    with jetlake.Server(jetstream=True) as started:
        yield started


def run(server, *words: str) -> str:
    result = CliRunner().invoke(create(), [*words, "--server", server.url])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_what_the_libraries_made_is_exported_and_needs_no_change(server, tmp_path: Path):
    with kv.connect(server) as buckets:
        for bucket in BUCKETS:
            buckets.create(bucket)
    with objects.connect(server) as stores:
        for store in STORES:
            stores.create(store)

    exported = run(server, "export")
    file = tmp_path / "exported.yaml"
    file.write_text(exported)

    plan = run(server, "plan", str(file), "--json")
    assert json.loads(plan)["steps"] == []
    assert "\nstreams:" not in f"\n{exported}", exported
    for config in BUCKETS:
        assert config.bucket in exported
    assert "key_value:" in exported
    assert "object_stores:" in exported


def test_an_exported_bucket_is_the_same_on_another_server(server, tmp_path: Path):
    with kv.connect(server) as buckets:
        for bucket in BUCKETS:
            buckets.create(bucket)
    file = tmp_path / "exported.yaml"
    file.write_text(run(server, "export"))

    with jetlake.Server(jetstream=True) as other:
        run(other, "apply", str(file))
        with kv.connect(other) as buckets:
            made = {status.bucket: status.config for status in buckets.list()}

    for config in BUCKETS:
        found = made[config.bucket]
        assert (found.history, found.ttl_s, found.max_value_bytes, found.mirror, found.sources) == (
            config.history,
            config.ttl_s,
            config.max_value_bytes,
            config.mirror,
            config.sources,
        )
