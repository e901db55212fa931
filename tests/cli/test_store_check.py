"""Which folders are stores, what one of them answers, and how a check is stopped."""

import shutil
from pathlib import Path

import pytest

from jetlake.cli.store_check import check, exit_code, find_stores
from jetlake.errors import ConfigurationError

FIXTURE = Path(__file__).parents[1] / "fixtures" / "stores" / "version_1"


@pytest.fixture
def store(tmp_path):
    return Path(shutil.copytree(FIXTURE, tmp_path / "a" / "ORDERS"))


def test_stores_are_found_by_any_file_of_theirs(tmp_path, store):
    for name, kept in [("anchors", ["anchor.1"]), ("segments", ["0000000002.segment"])]:
        (tmp_path / name).mkdir()
        for file in kept:
            shutil.copy(FIXTURE / file, tmp_path / name)
    (tmp_path / "definitions").mkdir()
    shutil.copy(FIXTURE / "anchor.2", tmp_path / "definitions" / "stream.2")
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "server.log.1").write_text("a line")

    found = [path.relative_to(tmp_path).as_posix() for path in find_stores(tmp_path)]

    assert found == ["a/ORDERS", "anchors", "definitions", "segments"]


def test_a_report_tells_what_a_store_holds(store):
    (checked,) = check(store)

    assert checked.report is not None
    assert checked.report.counts.messages == 17
    assert checked.report.counts.segments == 2
    assert checked.report.findings == []
    assert exit_code([checked]) == 0


def test_progress_ends_with_everything_done(store):
    told = []

    check(store, lambda folder, done, total: told.append((folder, done, total)))

    total = sum(path.stat().st_size for path in store.glob("*.segment"))
    assert told[-1] == (store, total, total)
    assert [done for _, done, _ in told] == sorted(done for _, done, _ in told)


def test_what_progress_raises_ends_the_check(store):
    def stop(folder, done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        check(store, stop)


def test_a_store_that_cannot_be_read_does_not_hide_the_others(store, tmp_path):
    broken = tmp_path / "a" / "BROKEN"
    (broken / "0000000001.segment").mkdir(parents=True)
    shutil.copy(FIXTURE / "anchor.1", broken)

    results = check(tmp_path)

    assert [checked.report is None for checked in results] == [True, False]
    assert "0000000001.segment" in (results[0].error or "")
    assert exit_code(results) == 2


def test_an_empty_folder_is_refused_with_what_to_give(tmp_path):
    with pytest.raises(ConfigurationError, match=r"no store in .* give the folder of a stream"):
        check(tmp_path)
