"""Pipelines as Python functions."""

import pytest

from jetlake.errors import ConfigurationError
from jetlake.spark.pipelines import StreamInput, TableOutput, pipeline, try_out
from jetlake.spark.pipelines.catalog import Catalog, load
from jetlake.spark.pipelines.python_file import MARK

GOOD = '''
from pyspark.sql.functions import udf
from jetlake.spark.pipelines import StreamInput, TableOutput, pipeline

def double(value):
    return value * 2

@pipeline(
    inputs={"orders": StreamInput("ORDERS", columns="id BIGINT")},
    outputs=[TableOutput("even", of="even"), TableOutput("odd", of="odd")],
)
def split(orders):
    """Orders by their ids."""
    twice = orders.withColumn("twice", udf(double, "BIGINT")("id"))
    return {"even": twice.where("id % 2 = 0"), "odd": twice.where("id % 2 = 1")}
'''


def test_a_function_stays_what_it_is_and_knows_its_pipeline():
    @pipeline(inputs={"orders": StreamInput("ORDERS")}, outputs=[TableOutput("copy")], trigger="1 minute")
    def copy(orders):
        """Copies."""
        return orders

    made = getattr(copy, MARK)
    assert copy("anything") == "anything"
    assert (made.name, made.about, made.trigger) == ("copy", "Copies.", "1 minute")


def test_parameters_that_are_not_the_inputs_are_refused():
    with pytest.raises(ConfigurationError, match="the function takes order and the inputs are orders"):

        @pipeline(inputs={"orders": StreamInput("ORDERS")}, outputs=[TableOutput("copy")])
        def copy(order):
            return order


@pytest.mark.spark
@pytest.mark.timeout(180)
def test_a_file_is_found_and_its_functions_reach_the_workers(spark, tmp_path):
    (tmp_path / "split.py").write_text(GOOD)
    made = Catalog(tmp_path).find("split")

    trial = try_out(made, spark, {"orders": [{"data": {"id": number}} for number in (1, 2, 3)]})

    assert made.about == "Orders by their ids."
    assert [(row["id"], row["twice"]) for row in trial.outputs["odd"]] == [(1, 2), (3, 6)]
    assert [row["id"] for row in trial.outputs["even"]] == [2]


@pytest.mark.spark
@pytest.mark.timeout(180)
def test_a_function_that_returns_no_frame_is_refused(spark):
    @pipeline(inputs={"orders": StreamInput("ORDERS")}, outputs=[TableOutput("copy")])
    def copy(orders):
        return orders.count()

    with pytest.raises(ConfigurationError, match="the function returned int; return a DataFrame"):
        try_out(getattr(copy, MARK), spark, {"orders": []})


@pytest.mark.parametrize(
    ("content", "match"),
    [
        ("x = 1\n", "has no pipeline: decorate a function"),
        ("x = 1\nx.y\n", "bad.py, line 2: AttributeError"),
        ("def (:\n", "bad.py, line 1: SyntaxError"),
    ],
)
def test_a_file_that_does_not_load_is_refused_with_its_line(tmp_path, content, match):
    (tmp_path / "bad.py").write_text(content)

    with pytest.raises(ConfigurationError, match=match):
        load(tmp_path / "bad.py")
