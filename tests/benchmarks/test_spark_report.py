"""The report of the measurements of Spark."""

import json
import os

from benchmarks.report import Setting
from benchmarks.spark_measure import Aim, Measurement, tree_cpu_s, tree_memory_bytes, tree_of
from benchmarks.spark_report import page, show, to_json, verdict

SETTING = Setting.now(build_profile="debug", jetlake="0", reference="1", repeats=1, seconds=0)

READ = Measurement(
    "jetlake-full", "read <all>", {"rows_per_s": 900_000.0, "of_parquet": 0.5}, [Aim("of_parquet", "at least", 0.8)]
)
PARQUET = Measurement("parquet-full", "Parquet", {"rows_per_s": 1_800_000.0})


def test_an_aim_is_reached_or_not():
    assert verdict(READ, "of_parquet") == "not reached: at least 0.8"
    assert verdict(READ, "rows_per_s") == ""
    assert Aim("p50_ms", "at most", 150).is_met_by(149)


def test_the_page_has_a_bar_for_each_rate_and_loads_nothing():
    text = page(SETTING, [READ, PARQUET])

    assert text.count("<rect") == 2
    assert "read &lt;all&gt;" in text
    assert "http" not in text


def test_programs_get_every_figure(capsys):
    kept = json.loads(to_json(SETTING, [READ, PARQUET]))
    show(SETTING, [READ])

    assert kept["measurements"][0]["figures"]["rows_per_s"] == 900_000.0
    assert "900,000" in capsys.readouterr().out


def test_a_process_has_itself_some_memory_and_some_cpu():
    assert os.getpid() in tree_of(os.getpid())
    assert tree_memory_bytes(os.getpid()) > 1_000_000
    assert tree_cpu_s(os.getpid()) > 0
