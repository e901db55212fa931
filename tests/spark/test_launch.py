"""How Java is started for a session, as far as that needs no Spark."""

import json
import os
import stat

import pytest

from jetlake.errors import MissingDependencyError
from jetlake.spark import launch


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A cache of its own, a Spark with nothing but a jar, and a Java that is a script."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in (*launch.OWN_SETTINGS, *launch.VARIABLES):
        monkeypatch.delenv(name, raising=False)
    jars = tmp_path / "spark" / "jars"
    jars.mkdir(parents=True)
    (jars / "spark-core_2.13-4.3.0.jar").touch()
    monkeypatch.setattr(launch, "make_home", lambda: tmp_path / "spark")
    return tmp_path


def java(place, script):
    program = place / "java" / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return place / "java"


ASKED = (
    r'printf "\0\n$0\0-cp\0x\0org.apache.spark.deploy.SparkSubmit\0pyspark-shell\0"; '
    'echo x >> "$(dirname "$0")/asked"'
)


def test_the_command_is_worked_out_once_for_the_same_settings(place):
    home = java(place, ASKED)

    first = launch.remembered_command({"spark.a": "1"}, place / "spark", home)
    again = launch.remembered_command({"spark.a": "1"}, place / "spark", home)
    other = launch.remembered_command({"spark.a": "2"}, place / "spark", home)

    assert first == again == other
    assert first == [str(home / "bin" / "java"), "-cp", "x", launch.SUBMIT, "pyspark-shell"]
    assert len((home / "bin" / "asked").read_text().splitlines()) == 2


def test_a_damaged_cache_is_made_again(place):
    home = java(place, ASKED)
    launch.remembered_command({}, place / "spark", home)
    for path in (place / "cache" / "jetlake").glob("command-*.json"):
        path.write_text("{")

    assert launch.SUBMIT in (launch.remembered_command({}, place / "spark", home) or [])
    (path,) = (place / "cache" / "jetlake").glob("command-*.json")
    assert launch.SUBMIT in json.loads(path.read_text())


def test_a_launcher_that_fails_leaves_it_to_sparks_script(place):
    home = java(place, "exit 1")

    assert launch.start({}, home, small=True) is None


def test_a_spark_of_the_users_own_is_started_by_its_own_script(place, monkeypatch):
    home = java(place, ASKED)
    monkeypatch.setenv("SPARK_HOME", "/opt/spark")

    assert launch.start({}, home, small=True) is None


def test_a_java_that_ends_at_once_is_told_with_what_it_said(place):
    home = java(place, f'case "$*" in *Main*) {ASKED};; *) echo "no room for a heap"; exit 1;; esac')

    gateway = launch.start({}, home, small=True, log=place / "spark.log")

    assert gateway is not None
    with pytest.raises(MissingDependencyError, match="Java did not start: no room for a heap"), gateway.connected():
        pass


def test_an_archive_is_written_once_and_used_when_it_is_complete(place):
    home = java(place, "exit 0")

    (writes, *_) = launch.archive_options(place / "spark", home)
    assert writes.startswith("-XX:ArchiveClassesAtExit=")
    unfinished = place / "cache" / "jetlake" / os.path.basename(writes.partition("=")[2])
    unfinished.parent.mkdir(parents=True)
    unfinished.touch()

    (reads, *_) = launch.archive_options(place / "spark", home)
    assert reads.startswith("-XX:SharedArchiveFile=")
    assert os.path.exists(reads.partition("=")[2])
    assert not unfinished.exists()


def test_small_sessions_compile_little():
    from jetlake.spark.sessions import defaults

    assert "spark.driver.extraJavaOptions" not in defaults("local[2]", small=True)
    assert defaults("local[2]")["spark.driver.extraJavaOptions"].startswith("-XX:+UseParallelGC -XX:Tier4")
