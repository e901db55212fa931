"""What the tables of the pipeline `fleet` must hold, given what a simulated fleet really did. Not a test."""

import json
from collections import Counter


def differences(lake, truth, prefix="fleet"):
    """Return where tables differ from the account of a simulation; it shares no code with the pipeline."""
    found = []

    def same(what, got, wanted):
        if got != wanted:
            found.append(f"{what}: {got!r} instead of {wanted!r}")

    tables = {name: rows(lake, f"{prefix}_{name}") for name in TABLES}
    nodes = {row["identity"]: row for row in tables["nodes"]}
    sessions = by(tables["sessions"], "identity", "started_at")
    checks = by(tables["checks"], "identity", "check")
    machines = {row["identity"]: row for row in tables["machines"]}
    inventory = {row["identity"]: row for row in tables["inventory"]}
    changes = Counter((row["identity"], row["check"]) for row in tables["check_changes"] if row["changed"])
    same("nodes", set(nodes), set(truth["nodes"]))
    for name, wanted in truth["nodes"].items():
        row = nodes[name]
        facts = (row["state"], row["version"], row["starts"], row["registrations"], seconds(row["registered_at"]))
        state = "up" if wanted["state"] in ("up", "crashed") else "down"
        same(name, facts, (state, wanted["version"], wanted["starts"], wanted["registrations"], wanted["registered_s"]))
        check_sessions(name, sessions, wanted["sessions"], same)
        for check, result in wanted["checks"].items():
            row = checks[name, f"check_{check}"]
            facts = (row["status"], row["runs"], row["changes"], seconds(row["since"]))
            same(f"{name} {check}", facts, tuple(result[key] for key in ("status", "runs", "changes", "since_s")))
            same(f"{name} {check} changes", changes[name, f"check_{check}"], result["changes"])
        if wanted["machine"]["transitions"]:
            row, machine = machines[name], wanted["machine"]
            facts = (row["state"], row["transitions"], row["failed_runs"])
            same(f"{name} machine", facts, (machine["state"], machine["transitions"], machine["runs_failed"]))
        if wanted["registrations"]:
            same(f"{name} inventory", json.loads(inventory[name]["inventory"]), wanted["inventory"])
    counts = truth["counts"]
    same("sessions", len(sessions), sum(node["starts"] for node in truth["nodes"].values()))
    same("transitions", len(tables["transitions"]), counts.get("transition", 0))
    same("runs", sum(row["runs"] for row in machines.values()), counts.get("watcher.exec", 0))
    same("check runs", sum(row["runs"] for row in tables["checks"]), counts.get("watcher.nagios", 0))
    same("registrations", sum(row["registrations"] for row in nodes.values()), counts.get("registration", 0))
    check_governor(tables["leases"], nodes.values(), truth, same)
    return found


TABLES = ("nodes", "sessions", "inventory", "checks", "check_changes", "machines", "transitions", "leases")


def check_sessions(name, sessions, wanted, same):
    """A crash is only known when the node starts again; when it was is known up to its last word."""
    for number, session in enumerate(wanted):
        row = sessions.get((name, session["started_s"]))
        if row is None:
            same(f"{name} session", None, session)
            continue
        if session["end"] in ("shutdown", "departure"):
            same(f"{name} session", (row["end"], seconds(row["ended_at"])), ("shutdown", session["ended_s"]))
        elif session["end"] == "crash" and number + 1 < len(wanted):
            ended_s, next_s = seconds(row["ended_at"]), wanted[number + 1]["started_s"]
            same(f"{name} session", (row["end"], session["started_s"] <= ended_s <= next_s), ("lost", True))
        else:
            same(f"{name} session", (row["end"], row["ended_at"]), (None, None))


def check_governor(leases, nodes, truth, same):
    governor = truth["governors"]["PUPPET"]
    never_left = sorted(row["lease"] for row in leases if row["left_at"] is None)
    same("leases", len(leases), truth["counts"].get("governor.enter", 0))
    same("leases that nobody left", never_left, sorted(governor["held"] + governor["abandoned"]))
    refused = sum(row["governor_refusals"] for row in nodes)
    same("refusals", refused, truth["counts"].get("governor.timeouts", 0))
    abandoned = {row["lease"] for row in leases if row["abandoned_at"] is not None}
    same("abandoned leases that were not", abandoned - set(governor["abandoned"]), set())


def rows(lake, name):
    table = lake.table(name)
    return table.to_arrow().to_pylist() if table.exists() else []


def by(rows, name, key):
    return {(row[name], seconds(row[key]) if key.endswith("_at") else row[key]): row for row in rows}


def seconds(moment):
    return 0 if moment is None else int(moment.timestamp())
