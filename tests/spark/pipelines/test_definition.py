"""Pipelines as YAML: what is understood, and what is refused with which words."""

import pytest

from jetlake.errors import ConfigurationError
from jetlake.spark.pipelines.catalog import SHIPPED, Catalog, load
from jetlake.spark.pipelines.definition import parse
from jetlake.spark.pipelines.model import (
    Pipeline,
    StreamInput,
    StreamOutput,
    TableInput,
    TableOutput,
    duration_s,
    trigger_s,
)

GOOD = """
pipeline: large_orders
about: Large orders
from:
  orders:
    stream: ORDERS
    subjects: [orders.eu.>, orders.us.>]
    columns: id BIGINT, total DOUBLE
    expect: {no id: id IS NOT NULL}
    watermark: {column: timestamp, delay: 1 minute}
    options: {maxRowsPerTrigger: 500}
  cities: {table: cities}
steps:
  - {name: large, sql: SELECT * FROM orders}
to:
  - {table: large_orders, partition_by: day, key: [id, day], order_by: sequence}
  - {stream: ALERTS, subject: 'alerts.{id}', from: orders}
trigger: 1 minute
options: {minPartitions: 2}
"""


def write(folder, name, content):
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(content)
    return path


def refusal(definition, match):
    with pytest.raises(ConfigurationError, match=match):
        parse(definition, "p")


def test_everything_a_definition_may_say_is_understood(tmp_path):
    (pipeline,) = load(write(tmp_path, "a.yaml", GOOD))

    assert pipeline.name == "large_orders"
    assert pipeline.inputs["orders"] == StreamInput(
        stream="ORDERS",
        subjects=("orders.eu.>", "orders.us.>"),
        columns="id BIGINT, total DOUBLE",
        expect={"no id": "id IS NOT NULL"},
        watermark="1 minute",
        options={"minPartitions": "2", "maxRowsPerTrigger": "500"},
    )
    assert pipeline.inputs["cities"] == TableInput("cities")
    assert pipeline.outputs == (
        TableOutput("large_orders", "large", ("day",), key=("id", "day"), order_by=("sequence",)),
        StreamOutput("ALERTS", "alerts.{id}", "orders"),
    )
    assert trigger_s(pipeline.trigger) == 60
    assert pipeline.table_names() == ["large_orders", "large_orders_bad"]
    assert pipeline.inputs["orders"].read_options("nats://x")["startingSequence"] == "earliest"


def test_short_forms_are_a_stream_a_step_and_a_table():
    pipeline = parse({"from": {"orders": "ORDERS"}, "sql": "SELECT 1", "to": "copy"}, "copy-all")

    assert pipeline.inputs == {"orders": StreamInput("ORDERS")}
    assert pipeline.steps == ("copy_all",)
    assert pipeline.outputs == (TableOutput("copy", "copy_all"),)


@pytest.mark.parametrize(
    ("definition", "match"),
    [
        ({}, "has no input: name a stream or a table under `from`"),
        ({"from": {"o": "O"}}, "has no output"),
        ({"form": {}}, "there is no key `form`; did you mean `from`"),
        ({"from": {"o": {"streem": "O"}}, "to": "t"}, "input o: there is no key `streem`; did you mean `stream`"),
        ({"from": {"o": {}}, "to": "t"}, "give either `stream`, a name, or `pattern`"),
        ({"from": {"o": {"pattern": "*"}}, "to": "t"}, "is not a regular expression .*; for all streams write"),
        ({"from": {"o": "O"}, "to": {"table": "t", "from": "oo"}}, "there is no input or step oo; did you mean o"),
        ({"from": {"o": "O"}, "to": {"table": "a/b"}}, "is not a name for a table"),
        ({"from": {"o": "O"}, "to": {"table": ".."}}, "is not a name for a table"),
        ({"from": {"o": "O"}, "to": {"table": "../../etc/x"}}, "is not a name for a table"),
        ({"from": {"o": "O", "t": {"table": "../x"}}, "to": "t2"}, "is not a name for a table"),
        ({"from": {"o": "O"}, "to": "t", "bad": "../bad"}, "is not a name for a table|there is no key"),
        (
            {"from": {"o": "O"}, "to": {"table": "t", "order_by": "at"}},
            "order_by says which row of a key is the newest",
        ),
        ({"from": {"o": "O"}, "to": ["t", "t"]}, "t is written twice"),
        ({"from": {"o": "O"}, "to": "t", "trigger": "often"}, "'often' is not a duration"),
        ({"from": {"o": "O"}, "to": "t", "steps": [{"name": "o", "sql": "x"}]}, "two inputs or steps are called o"),
        ({"from": {"o": "O"}, "to": "t", "steps": [{"name": "a b", "sql": "x"}]}, "cannot be a name in SQL"),
        ({"from": {"o": "O"}, "to": "t", "steps": [{"name": "a"}]}, "step 1: `sql` is missing"),
        ({"from": {"o": "O"}, "to": "t", "sql": "x", "steps": []}, "give either `sql`"),
        ({"from": ["o"], "to": "t"}, "write keys and values here"),
        ({"from": {"o": "O"}, "to": "t", "options": {"maxRowPerTrigger": 1}}, "did you mean maxRowsPerTrigger"),
        ({"from": {"o": "O"}, "to": "t", "sample": {"x": []}}, "sample: there is no x"),
        ({"from": {"o": {"stream": "O", "watermark": "soon"}}, "to": "t"}, "watermark: 'soon' is not a duration"),
    ],
)
def test_what_cannot_work_is_refused_with_what_to_do(definition, match):
    refusal(definition, match)


def test_yaml_that_is_none_is_refused_with_line_and_column(tmp_path):
    path = write(tmp_path, "a.yaml", "from: [a\nto: b")

    with pytest.raises(ConfigurationError, match=r"a\.yaml, line 2, column 3"):
        load(path)
    with pytest.raises(ConfigurationError, match="a pipeline begins with"):
        load(write(tmp_path, "b.yaml", "- 1"))


def test_the_catalog_lists_what_ships_and_what_is_in_the_folder(tmp_path):
    write(tmp_path, "large_orders.yaml", GOOD)
    write(tmp_path, "own.yaml", "use: archive\nwith: {stream: ORDERS, table: own}\n")
    write(tmp_path, "broken.yaml", "from: {")
    write(tmp_path, "test_own.py", "raise RuntimeError")
    catalog = Catalog(tmp_path)

    entries = {entry.name: entry for entry in catalog.entries()}

    assert sorted(entries) == sorted([*SHIPPED, "broken", "large_orders", "own"])
    assert {"archive", "dead", "devices", "logs"} <= entries.keys()
    assert "broken.yaml" in entries["broken"].problem
    assert catalog.find("own").table_names() == ["own", "own_bad"]
    assert catalog.find("archive", {"stream": "A"}).inputs["messages"].stream == "A"


@pytest.mark.parametrize(
    ("name", "settings", "match"),
    [
        ("archiv", {}, "there is no pipeline archiv in .*; did you mean archive"),
        ("archive", {"steam": "A"}, "archive has no setting steam; did you mean stream"),
        ("logs", {"history": "many"}, "history is 'many' and should be a number"),
        ("none.yaml", {}, "there is no file none.yaml"),
        ("large_orders", {"a": "b"}, "--set is for pipelines that ship: .*archive, "),
    ],
)
def test_a_name_that_is_not_found_is_refused_with_the_nearest(tmp_path, name, settings, match):
    write(tmp_path, "large_orders.yaml", GOOD)

    with pytest.raises(ConfigurationError, match=match):
        Catalog(tmp_path).find(name, settings)


@pytest.mark.parametrize(
    ("text", "seconds"), [("500ms", 0.5), ("5 seconds", 5), ("1 minute", 60), ("2h", 7200), ("1 day", 86400)]
)
def test_durations_are_read(text, seconds):
    assert duration_s(text, "test") == seconds
    assert trigger_s("once") is None


def test_several_frames_may_add_rows_to_one_table_and_only_one_may_upsert_them():
    def made(**more):
        outputs = tuple(TableOutput("all", of=frame, **more) for frame in ("one", "two"))
        return Pipeline("p", {"orders": StreamInput("ORDERS")}, lambda frames: frames, outputs)

    made().check()

    assert made().table_names() == ["all", "p_bad"]
    with pytest.raises(ConfigurationError, match="all is written twice"):
        made(key=("id",)).check()


def test_outputs_that_share_a_table_are_refused_where_rows_of_one_would_be_lost():
    def made(*frames, table="all", given=None):
        outputs = tuple(TableOutput(table, of=frame) for frame in frames)
        return Pipeline("p", {"orders": given or StreamInput("ORDERS")}, lambda frames: frames, outputs)

    with pytest.raises(ConfigurationError, match="all is written twice"):
        # A pipeline from tables only replaces all rows.
        made("one", "two", given=TableInput("orders")).check()
    with pytest.raises(ConfigurationError, match="p_bad is written twice"):
        made("one", "one", table="p_bad").check()
    with pytest.raises(ConfigurationError, match="'t/wo' is not a name for a frame that shares table all"):
        made("one", "t/wo").check()
