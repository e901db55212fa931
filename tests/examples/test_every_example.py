"""Each example has a test that runs it."""

from __future__ import annotations

from tests.conftest import REPOSITORY

TEST_OF_EXAMPLE = {
    "auth_callout.py": "tests/examples/test_auth_callout.py",
    "infrastructure": "tests/iac/test_example.py",
    "notebook.ipynb": "tests/examples/test_notebook.py",
    "pipelines/archive_orders.yaml": "tests/spark/pipelines/test_validation.py",
    "pipelines/large_orders.py": "tests/spark/pipelines/test_validation.py",
    "pipelines/sales.yaml": "tests/spark/pipelines/test_validation.py",
    "spark_connect.py": "tests/spark/test_fronts.py",
    "spark_declarative": "tests/spark/test_fronts.py",
    "spark_tables.py": "tests/examples/test_spark_tables.py",
}


def test_every_example_has_a_test_that_names_it():
    folder = REPOSITORY / "examples"
    files = [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()]
    shown = [file for file in files if "__pycache__" not in file]

    without = [
        file for file in shown if not any(file == name or file.startswith(f"{name}/") for name in TEST_OF_EXAMPLE)
    ]

    assert not without, f"write a test for these examples, and name it here: {', '.join(without)}"
    for name, test in TEST_OF_EXAMPLE.items():
        assert name.rpartition("/")[2] in (REPOSITORY / test).read_text(), f"{test} does not run examples/{name}"
