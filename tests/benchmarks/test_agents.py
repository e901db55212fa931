"""The benchmark of machines does what it says, with few of them."""

import json

from benchmarks import agents


def test_a_few_machines_are_measured(capsys, monkeypatch):
    monkeypatch.setattr(agents, "SETTLE_S", 0.5)

    assert agents.main(["--machines", "3", "--idle", "0.5", "--json"]) == 0

    result = json.loads(capsys.readouterr().out)
    assert result["machines"] == 3
    assert all(result[key] > 0 for key in ("started_s", "memory_mib", "threads", "change_s"))
