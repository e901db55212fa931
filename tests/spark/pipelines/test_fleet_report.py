"""The page about a fleet: what a person sees at a glance, from tables that may not all be there."""

import datetime

import deltalake
import pyarrow
import pytest

from jetlake.spark.lake.folder import Lake
from jetlake.spark.pipelines import catalog, report
from jetlake.spark.pipelines.sections import Facts, Rows, Tables

NOON = datetime.datetime(2026, 1, 31, 12, tzinfo=datetime.UTC)


def at(minutes):
    return NOON + datetime.timedelta(minutes=minutes)


def node(identity, state, last_minutes, **more):
    counts = {"starts": 1, "lost_sessions": 0, "registrations": 1, "governor_refusals": 0}
    times = {"started_at": at(0), "last_event_at": at(last_minutes), "registered_at": at(1)}
    return {"identity": identity, "state": state, "version": "0.23.0", **times, **counts, **more}


def result(identity, status, *, flapping=False):
    times = {"since": at(5), "checked_at": at(90)}
    counts = {"runs": 90, "changes": 9 if flapping else 1, "recent_changes": 8 if flapping else 0}
    return {"identity": identity, "check": "disk", "status": status, **times, **counts, "flapping": flapping}


@pytest.fixture
def tables(tmp_path):
    rows = {
        "nodes": [node("a", "up", 90), node("b", "up", 10), node("<i>c</i>", "down", 80, governor_refusals=2)],
        "checks": [result("a", "CRITICAL", flapping=True), result("b", "OK"), result("<i>c</i>", "CRITICAL")],
        "sessions": [
            {
                "identity": "a",
                "started_at": at(0),
                "ended_at": None,
                "end": None,
                "version": "1",
            },
            {
                "identity": "b",
                "started_at": at(0),
                "ended_at": at(9),
                "end": "lost",
                "version": "1",
            },
        ],
        "leases": [
            {
                "governor": "PUPPET",
                "lease": 1,
                "identity": "a",
                "entered_at": at(1),
                "left_at": at(2),
                "abandoned_at": at(2),
            },
            {
                "governor": "PUPPET",
                "lease": 2,
                "identity": "a",
                "entered_at": at(3),
                "left_at": None,
                "abandoned_at": None,
            },
        ],
    }
    for name, values in rows.items():
        table = pyarrow.Table.from_pylist(values)
        fields = [pyarrow.string() if field.type == pyarrow.null() else field.type for field in table.schema]
        schema = pyarrow.schema(list(zip(table.column_names, fields, strict=True)))
        deltalake.write_deltalake(str(tmp_path / f"fleet_{name}"), table.cast(schema))
    return Tables(Lake(tmp_path), catalog.shipped("fleet", "fleet", {}).table_names())


def facts_of(sections):
    return {
        fact.label: fact.value
        for each in sections
        for part in each.parts
        if isinstance(part, Facts)
        for fact in part.facts
    }


def test_a_glance_tells_what_is_up_what_is_wrong_and_who_is_silent(tables):
    sections = catalog.report_of("fleet")(tables)

    facts = facts_of(sections)
    assert {name: facts[name] for name in ("nodes", "up", "down", "silent", "critical checks", "flapping checks")} == {
        "nodes": "3",
        "up": "1",
        "down": "1",
        "silent": "1",
        "critical checks": "1",
        "flapping checks": "1",
    }
    assert (facts["slots held"], facts["refused"]) == ("1", "2")
    listed = {part.title: part.rows for each in sections for part in each.parts if isinstance(part, Rows)}
    assert [row[0] for row in listed["Not OK for the longest time"]] == ["a"]
    assert [row[0] for row in listed["Sessions that ended without a shutdown"]] == ["b"]


def test_the_page_escapes_what_nodes_are_called_and_asks_nobody(tables):
    page = report.page("fleet", "About", None, [], [], catalog.report_of("fleet")(tables))

    assert "<i>c</i>" not in page
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")
    assert page.count("<svg") >= 5


def test_tables_that_are_not_there_yet_leave_their_sections_out(tmp_path):
    assert catalog.report_of("fleet")(Tables(Lake(tmp_path), ["fleet_nodes"])) == []
