"""Operator mode in a configuration file: what goes together, and what does not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.compatibility.claims import Key, Operator, make_user
from tests.compatibility.server_process import ServerProcess, run_to_end

OPERATOR = Operator()
NAMED = Operator(system_account=OPERATOR.system.public)
OTHER = Operator(system_account=Operator().system.public)
JWT, SYSTEM = f"operator: {OPERATOR.jwt()}", f"system_account: {OPERATOR.system.public}"
MEMORY, PRELOAD = "resolver: MEMORY", OPERATOR.preload()


def decorated(token: str) -> str:
    return f"-----BEGIN NATS OPERATOR JWT-----\n{token}\n------END NATS OPERATOR JWT------\n"


def check(server_kind: str, folder: Path, *parts: str) -> tuple[int, str]:
    """Return exit code and message of a check."""
    path = folder / "server.conf"
    path.write_text("\n".join(parts) + "\n")
    result = run_to_end(server_kind, ["-t", "-c", str(path)], folder)
    return result.returncode, result.stderr + result.stdout


@pytest.mark.parametrize(
    "parts",
    [
        (JWT, SYSTEM, MEMORY, PRELOAD),
        (JWT, SYSTEM, "resolver: MEM", PRELOAD),
        (JWT, SYSTEM, "resolver: { type: full, dir: jwt }"),
        (
            JWT,
            SYSTEM,
            'resolver: { type: FULL, dir: "jwt", allow_delete: true, interval: "2m", timeout: "1s", limit: 9 }',
        ),
        (JWT, SYSTEM, 'resolver: { type: cache, dir: jwt, ttl: "1h", limit: 5 }'),
        (f"operators: [{OPERATOR.jwt()}]", SYSTEM, MEMORY, PRELOAD),
        (f"root_operator: {OPERATOR.jwt()}", SYSTEM, "account_resolver: MEMORY", PRELOAD),
        (f"trusted: {OPERATOR.key.public}", SYSTEM, MEMORY, PRELOAD),
        (f"operator: {NAMED.jwt()}", MEMORY, PRELOAD),
        (f"operator: {NAMED.jwt()}", "resolver: { type: full, dir: jwt }"),
        (JWT, SYSTEM, MEMORY, PRELOAD, f"resolver_pinned_accounts: {OPERATOR.system.public}"),
        (JWT, SYSTEM, MEMORY, PRELOAD, f"default_sentinel: {make_user(OPERATOR.system, bearer_token=True).jwt}"),
    ],
    # Keys are other ones each time, and workers must agree about the names of tests.
    ids=lambda parts: " ".join(part.split(":")[0].split("{")[0].strip() for part in parts),
)
def test_what_goes_together(server_kind: str, tmp_path: Path, parts: tuple[str, ...]) -> None:
    code, message = check(server_kind, tmp_path, *parts)

    assert code == 0, message


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ((f"operator: {OPERATOR.system.jwt()}", MEMORY), "operator JWT"),
        (("operator: nowhere.jwt", MEMORY), "nowhere.jwt"),
        (("operator: eyJ.x.y", MEMORY), "operator JWT"),
        ((JWT, SYSTEM, "resolver: { type: full }"), "dir"),
        ((JWT, SYSTEM, "resolver: { type: nonsense, dir: jwt }"), "resolver"),
        ((JWT, SYSTEM, "resolver: nonsense"), "resolver"),
        ((JWT, SYSTEM, 'resolver: { type: full, dir: jwt, ttl: "1h" }'), "FULL does not accept ttl"),
        ((JWT, SYSTEM, 'resolver: { type: cache, dir: jwt, interval: "1h" }'), "CACHE does not accept sync"),
        (
            (JWT, SYSTEM, "resolver: { type: cache, dir: jwt, allow_delete: true }"),
            "CACHE does not accept allow_delete",
        ),
        ((JWT, SYSTEM, "resolver: { type: full, dir: jwt, hard_delete: true }"), "hard_delete has no effect"),
        ((JWT, SYSTEM, MEMORY, f"resolver_preload {{ {OPERATOR.system.public}: nonsense }}"), "account JWT"),
        ((JWT, SYSTEM, MEMORY, PRELOAD, "trusted: OABC"), "public operator nkey"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_refused(server_kind: str, tmp_path: Path, parts: tuple[str, ...], reason: str) -> None:
    code, message = check(server_kind, tmp_path, *parts)

    assert code == 1, message
    assert reason in message


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ((JWT, SYSTEM), "account"),
        (
            (JWT, SYSTEM, MEMORY, PRELOAD, "accounts { A {} }"),
            "operators do not allow Accounts to be configured directly",
        ),
        (
            (JWT, SYSTEM, MEMORY, PRELOAD, "authorization { users: [{user: a, password: b}] }"),
            "operators do not allow users to be configured directly",
        ),
        (
            (JWT, SYSTEM, MEMORY, PRELOAD, f"authorization {{ users: [{{nkey: {Key('user').public}}}] }}"),
            "operators do not allow users to be configured directly",
        ),
        ((JWT, SYSTEM, MEMORY, PRELOAD, f"trusted_keys: {OPERATOR.key.public}"), "conflicting options"),
        ((f"operator: {OTHER.jwt()}", SYSTEM, MEMORY, PRELOAD), "must be identical"),
        ((JWT, "resolver: { type: full, dir: jwt }"), "the system account needs to be specified"),
        ((JWT, SYSTEM, MEMORY), "system account"),
        ((JWT, SYSTEM, MEMORY, PRELOAD, "resolver_pinned_accounts: [X]"), "not a valid public account nkey"),
        ((JWT, SYSTEM, MEMORY, PRELOAD, "default_sentinel: x"), "default sentinel JWT not valid"),
        (
            (JWT, SYSTEM, MEMORY, PRELOAD, f"default_sentinel: {make_user(OPERATOR.system).jwt}"),
            "default sentinel must be a bearer token",
        ),
        ((f"operator: {Operator(assert_server_version='99.0.0').jwt()}", MEMORY), "version"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_does_not_start(server_kind: str, tmp_path: Path, parts: tuple[str, ...], reason: str) -> None:
    path = tmp_path / "server.conf"
    path.write_text("\n".join(parts) + "\n")

    result = run_to_end(server_kind, ["-a", "127.0.0.1", "-p", "-1", "-c", str(path)], tmp_path)

    assert result.returncode == 1
    assert reason in result.stderr + result.stdout


@pytest.mark.parametrize("form", [str, decorated, lambda token: f"{token}\n"])
def test_operator_may_be_in_a_file(
    start_server: Callable[..., ServerProcess], tmp_path: Path, form: Callable[[str], str]
) -> None:
    operator = Operator()
    (tmp_path / "operator.jwt").write_text(form(operator.jwt()))
    config = operator.configuration().replace(operator.jwt(), "").split("\n", 1)[1]

    server = start_server(config=f'operator: "{tmp_path / "operator.jwt"}"\n{config}')

    with server.client() as client:
        client.connect(**operator.admin.presented(client.info["nonce"]))
