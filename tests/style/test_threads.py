"""Threads of the engine are started in one place, where a panic stops the engine."""

from __future__ import annotations

import re
from pathlib import Path

ENGINE = Path(__file__).parents[2] / "crates" / "engine" / "src"

STARTS = re.compile(r"\bthread::(spawn|scope|Builder)\b|\bBuilder::new\(\)\s*\.name\(")

ALLOWED = {
    "common/threads.rs": "the one place",
    "load/workload.rs": "threads of a client, whose panics are told by `join`",
}


def _without_tests(text: str) -> str:
    return text.partition("#[cfg(test)]\nmod tests")[0]


def test_threads_of_the_engine_are_started_where_a_panic_stops_it() -> None:
    found = []
    for path in sorted(ENGINE.rglob("*.rs")):
        name = path.relative_to(ENGINE).as_posix()
        if name in ALLOWED or name.endswith("_tests.rs"):
            continue
        text = _without_tests(path.read_text())
        found += [f"{name}: {match.group()}" for match in STARTS.finditer(text)]
    assert not found, f"start threads with `threads::spawn`, which notices a panic: {found}"


def test_what_is_allowed_to_start_threads_does() -> None:
    assert [name for name in ALLOWED if not STARTS.search((ENGINE / name).read_text())] == []


STORE_COMMITS = re.compile(r"\bstore(?:\(\))?\s*\.commit\(\)")

MAY_COMMIT_EVERYTHING = {
    "storage/commit/scheduler.rs": "hears by `take_progress` what became of each message",
    "stream/archive/import.rs": "is alone with its store",
    "stream/consumers/consuming.rs": "looks at nothing but the store's status",
    "stream/replication/work.rs": "looks at the number of resets",
    "stream/staged_commit/requests.rs": "looks at the number of resets",
}


def test_who_must_know_what_became_of_its_own_work_commits_through_it() -> None:
    found = []
    for path in sorted(ENGINE.rglob("*.rs")):
        name = path.relative_to(ENGINE).as_posix()
        if name not in MAY_COMMIT_EVERYTHING and not name.endswith("_tests.rs"):
            found += [name for _ in STORE_COMMITS.finditer(_without_tests(path.read_text()))]
    assert not found, f"`Store::commit` says nothing about what the caller staged; take `commit_through`: {found}"
