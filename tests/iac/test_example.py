"""The example folder is planned, made, and then as declared, on both servers."""

from tests.conftest import REPOSITORY
from tests.iac.servers import ask, jetlake

FOLDER = REPOSITORY / "examples" / "infrastructure"


def test_the_example_is_made_and_stays_as_declared(server):
    paths = (FOLDER, FOLDER / "regions.py")

    planned = jetlake(server, "plan", *paths)
    applied = jetlake(server, "apply", *paths)
    checked = jetlake(server, "drift", *paths)

    assert planned.stderr == ""
    assert "18 to create" in planned.stdout
    assert applied.exit_code == 0, applied.output
    assert checked.stdout == "No difference: 18 as declared.\n"
    names = ask(server, lambda api: api.stream_names())
    assert {"ORDERS", "AUDIT", "DEAD", "KV_sessions", "OBJ_invoices", "DEVICES", "LOGS", "events", "METRICS"} <= set(
        names
    )


def test_python_in_the_folder_runs_only_when_it_is_named(server):
    assert "METRICS" not in jetlake(server, "plan", FOLDER).stdout
