"""Spark's home: links to the installed package, without the zip files that its Python processes would compile."""

import os
from pathlib import Path

import pytest

from jetlake.spark.home import make_home, spark_home

pytestmark = pytest.mark.spark

pyspark = pytest.importorskip("pyspark", reason="the extra `spark` is not installed")


def test_the_home_has_the_programs_of_the_package_and_no_python(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    folder = make_home()

    assert folder.is_relative_to(tmp_path)
    assert (folder / "jars").resolve() == (Path(pyspark.__file__).parent / "jars").resolve()
    assert (folder / "bin" / "spark-submit").is_file()
    assert not (folder / "python").exists()
    assert make_home() == folder


def test_a_home_that_somebody_has_set_is_left_alone(monkeypatch):
    monkeypatch.setenv("SPARK_HOME", "/opt/spark")

    with spark_home():
        assert os.environ["SPARK_HOME"] == "/opt/spark"

    assert os.environ["SPARK_HOME"] == "/opt/spark"


def test_the_variable_is_gone_when_spark_has_started(tmp_path, monkeypatch):
    monkeypatch.delenv("SPARK_HOME", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    with spark_home():
        assert os.environ["SPARK_HOME"].startswith(str(tmp_path))

    assert "SPARK_HOME" not in os.environ


def test_where_no_folder_can_be_made_spark_has_its_usual_home(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))

    assert make_home() is None


def test_python_processes_of_spark_import_the_installed_package(spark):
    (path,) = spark.sparkContext.parallelize([0], 1).map(lambda _: __import__("pyspark").__file__).collect()

    assert ".zip" not in path
