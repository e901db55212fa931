"""The pages of monitoring: keys, JSON types, parameters, status codes and error texts, the same on both servers.

Numbers that are a server's own (memory, its internal subscriptions) are compared by type only. What differs on purpose
is named in `docs/reference/differences.md`.
"""

from __future__ import annotations

import json
import re
import signal
import ssl
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.compatibility.certificates import Authority
from tests.compatibility.monitored import (
    ACCOUNT_DETAIL,
    CONNECTION,
    CONNZ,
    DIRECTION,
    DURATION,
    JETSTREAM_FIGURES,
    JSZ,
    LOOKUPS,
    TIME,
    TIMEOUT_SECONDS,
    UPTIME,
    VARZ,
    Monitored,
    assert_shape,
    monitored_of,
    read_pong,
)
from tests.compatibility.server_process import ServerProcess, run_to_end
from tests.compatibility.wire import RawClient

# The look of pages


@pytest.mark.parametrize(
    "path",
    [
        *["/varz", "/connz", "/routez", "/gatewayz", "/leafz", "/subsz", "/subscriptionsz", "/accountz", "/accstatz"],
        *["/jsz", "/healthz", "/ipqueuesz"],
    ],
)
def test_pages_say_that_they_are_json_for_every_origin(monitored: Monitored, path: str) -> None:
    answer = monitored.get(path)

    assert answer.status == 200
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    assert int(answer.headers["Content-Length"]) == len(answer.body)
    assert re.match(r"^\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT$", answer.headers["Date"])


def test_pages_are_indented_by_two_spaces_and_health_is_not(monitored: Monitored) -> None:
    assert monitored.get("/leafz").body.startswith(b'{\n  "server_id": "')
    assert monitored.get("/healthz").body == b'{"status":"ok"}'


def test_the_root_lists_the_pages_as_html(monitored: Monitored) -> None:
    answer = monitored.get("/")

    assert (answer.status, answer.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    for page in (b"/varz", b"/connz", b"/jsz", b"/healthz", b"/accstatz", b"/subsz"):
        assert page in answer.body


@pytest.mark.parametrize("path", ["/nope", "/varz/", "/VARZ", "/varzz", "/connz;a=b", "/%00"])
def test_other_paths_are_not_found(monitored: Monitored, path: str) -> None:
    answer = monitored.get(path)

    assert (answer.status, answer.text) == (404, "404 page not found\n")


@pytest.mark.parametrize(("path", "location"), [("//varz", "/varz"), ("/./varz", "/varz"), ("/a/../varz", "/varz")])
def test_untidy_paths_are_redirected(monitored: Monitored, path: str, location: str) -> None:
    answer = monitored.get(path)

    assert (answer.status, answer.headers["Location"]) == (307, location)


@pytest.mark.parametrize("method", ["HEAD", "POST", "OPTIONS", "FOO"])
def test_any_method_is_answered(monitored: Monitored, method: str) -> None:
    answer = monitored.get("/healthz", method)

    assert answer.status == 200
    assert answer.body == (b"" if method == "HEAD" else b'{"status":"ok"}')
    assert answer.headers["Content-Length"] == "15"


def test_a_function_name_for_scripts_is_ignored(monitored: Monitored) -> None:
    assert monitored.get("/leafz?callback=f").json["leafs"] == []


@pytest.mark.parametrize(
    ("data", "status_line"),
    [
        (b"GET /healthz HTTP/1.1\r\n\r\n", b"HTTP/1.1 400 Bad Request"),
        (b"GET /healthz\r\n\r\n", b"HTTP/1.1 400 Bad Request"),
        (b"\x00\x01\x02\r\n\r\n", b"HTTP/1.1 400 Bad Request"),
        (b"CONNECT {}\r\n", b"HTTP/1.1 400 Bad Request"),
        (b"GET healthz HTTP/1.1\r\nHost: a\r\n\r\n", b"HTTP/1.1 400 Bad Request"),
        (b"GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n", b"HTTP/1.1 400 Bad Request"),
        (b"GET /healthz HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", b"HTTP/1.1 400 Bad Request"),
        (b"GET /healthz HTTP/1.1\r\nHost: a\r\nbad header\r\n\r\n", b"HTTP/1.1 400 Bad Request"),
        (b"GET /healthz HTTP/2.0\r\nHost: a\r\n\r\n", b"HTTP/1.1 505 HTTP Version Not Supported"),
        (b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n", b"HTTP/1.1 200 OK"),
        (b"GET /healthz HTTP/1.1\nHost: a\n\n", b"HTTP/1.1 200 OK"),
        (b"GET http://a/healthz HTTP/1.1\r\nHost: a\r\n\r\n", b"HTTP/1.1 200 OK"),
    ],
)
def test_odd_requests_get_the_same_status(monitored: Monitored, data: bytes, status_line: bytes) -> None:
    assert monitored.exchange(data).startswith(status_line)


def test_requests_are_counted(start_monitored: Callable[..., Monitored]) -> None:
    monitored = start_monitored()
    for path in ("/", "/connz", "/subscriptionsz", "/jsz", "/nope", "/stacksz"):
        monitored.get(path)
    monitored.get("/varz")

    counts = monitored.get_json("/varz")["http_req_stats"]

    assert counts == {"/": 1, "/connz": 1, "/subsz": 1, "/jsz": 1, "/varz": 2}


# Keys and types


def test_varz(monitored: Monitored) -> None:
    page = monitored.get_json("/varz")

    assert_shape(page, VARZ)
    assert (page["proto"], page["max_connections"], page["ping_interval"]) == (1, 65_536, 120_000_000_000)
    assert (page["max_control_line"], page["max_payload"], page["max_pending"]) == (4_096, 1_048_576, 67_108_864)
    assert (page["write_deadline"], page["ping_max"], page["auth_timeout"]) == (10_000_000_000, 2, 2)
    assert (page["http_host"], page["https_port"], page["system_account"]) == ("127.0.0.1", 0, "$SYS")
    assert all(TIME.match(page[key]) for key in ("start", "now", "config_load_time"))
    assert UPTIME.match(page["uptime"])


def test_varz_has_its_keys_in_the_same_order(monitored: Monitored) -> None:
    assert list(monitored.get_json("/varz")) == list(VARZ)


def test_varz_counts_traffic(monitored: Monitored) -> None:
    before = monitored.get_json("/varz")

    with monitored.server.client() as client:
        client.connect(headers=True)
        client.send(
            b"SUB x 1\r\nSUB x 2\r\nPUB x 5\r\nhello\r\nHPUB x 17 21\r\nNATS/1.0\r\na:b\r\n\r\nbody\r\nPING\r\n"
        )
        read_pong(client)
        after = monitored.get_json("/varz")

    def grown(key: str) -> int:
        return int(after[key]) - int(before[key])

    assert (grown("connections"), grown("total_connections"), grown("subscriptions")) == (1, 1, 2)
    assert (grown("in_msgs"), grown("in_bytes"), grown("out_msgs"), grown("out_bytes")) == (2, 26, 4, 52)
    assert (grown("in_client_msgs"), grown("out_client_bytes")) == (2, 52)
    monitored.wait_for_connections("", 0)


def test_connz(monitored: Monitored, one_client: RawClient) -> None:
    page = monitored.get_json("/connz")
    entry = page["connections"][0]

    assert_shape(page, CONNZ)
    assert_shape(entry, CONNECTION)
    assert (page["num_connections"], page["total"], page["offset"], page["limit"]) == (1, 1, 0, 1024)
    assert (entry["kind"], entry["type"], entry["ip"]) == ("Client", "nats", "127.0.0.1")
    assert (entry["cid"], entry["subscriptions"], entry["name"]) == (one_client.info["client_id"], 2, "one")
    assert (entry["in_msgs"], entry["in_bytes"], entry["out_msgs"], entry["out_bytes"]) == (1, 5, 2, 10)
    assert TIME.match(entry["start"])
    assert TIME.match(entry["last_activity"])
    assert DURATION.match(entry["rtt"])
    assert UPTIME.match(entry["uptime"])
    assert UPTIME.match(entry["idle"])
    assert list(entry) == list(CONNECTION)


def test_connz_shows_subscriptions_when_asked(monitored: Monitored, one_client: RawClient) -> None:
    cid = one_client.info["client_id"]

    subjects = monitored.connections("?subs=1")[0]["subscriptions_list"]
    details = monitored.connections("?subs=detail")[0]["subscriptions_list_detail"]

    assert sorted(subjects) == ["x.*", "x.1"]
    assert sorted(details, key=lambda detail: str(detail["sid"])) == [
        {"subject": "x.*", "qgroup": "q", "sid": "1", "msgs": 1, "max": 5, "cid": cid},
        {"subject": "x.1", "sid": "2", "msgs": 1, "cid": cid},
    ]
    assert "subscriptions_list" not in monitored.connections("?subs=detail")[0]
    assert "subscriptions_list" not in monitored.connections("?subs=0")[0]


def test_subsz(monitored: Monitored, one_client: RawClient) -> None:
    page = monitored.get_json("/subsz?acc=$G")

    shape = {"server_id": str, "now": str, **LOOKUPS, "total": int, "offset": int, "limit": int}
    assert_shape(page, shape)
    assert list(page) == list(shape)
    assert page["num_subscriptions"] >= 2
    assert (page["total"], page["offset"], page["limit"]) == (0, 0, 1024)


def test_subsz_lists_who_would_get_a_message(monitored: Monitored, one_client: RawClient) -> None:
    page = monitored.get_json("/subsz?subs=1&test=x.1&acc=$G")

    common = {"account": "$G", "account_tag": "$G", "cid": one_client.info["client_id"], "msgs": 1}
    assert page["total"] == 2
    assert sorted(page["subscriptions_list"], key=lambda detail: str(detail["sid"])) == [
        {**common, "subject": "x.*", "qgroup": "q", "sid": "1", "max": 5},
        {**common, "subject": "x.1", "sid": "2"},
    ]


def test_subsz_is_cut_by_offset_and_limit(monitored: Monitored, one_client: RawClient) -> None:
    first = monitored.get_json("/subsz?subs=1&test=x.1&acc=$G&limit=1")
    last = monitored.get_json("/subsz?subs=1&test=x.1&acc=$G&offset=1")
    behind = monitored.get_json("/subsz?subs=1&test=x.1&acc=$G&offset=9223372036854775807&limit=9223372036854775807")

    assert (first["total"], first["limit"], len(first["subscriptions_list"])) == (2, 1, 1)
    assert (last["total"], last["offset"], len(last["subscriptions_list"])) == (2, 1, 1)
    assert (behind["total"], behind.get("subscriptions_list", [])) == (2, [])


def test_accountz(monitored: Monitored) -> None:
    page = monitored.get_json("/accountz")

    assert_shape(page, {"server_id": str, "now": str, "system_account": str, "accounts": list})
    assert sorted(page["accounts"]) == ["$G", "$SYS"]


def test_accountz_of_one_account(monitored: Monitored, one_client: RawClient) -> None:
    page = monitored.get_json("/accountz?acc=$G")

    assert_shape(page["account_detail"], ACCOUNT_DETAIL)
    assert (page["account_detail"]["account_name"], page["account_detail"]["client_connections"]) == ("$G", 1)
    assert "accounts" not in page
    assert monitored.get_json("/accountz?acc=$SYS")["account_detail"]["is_system"] is True


def test_accstatz(monitored: Monitored, one_client: RawClient) -> None:
    page = monitored.get_json("/accstatz")
    entry = page["account_statz"][0]

    assert_shape(page, {"server_id": str, "now": str, "account_statz": list})
    assert [each["acc"] for each in page["account_statz"]] == ["$G"]
    assert_shape(entry, {
        "acc": str,
        "name": str,
        "conns": int,
        "leafnodes": int,
        "total_conns": int,
        "num_subscriptions": int,
        "sent": DIRECTION,
        "received": DIRECTION,
        "slow_consumers": int,
    })  # fmt: skip
    assert (entry["name"], entry["conns"], entry["total_conns"]) == ("$G", 1, 1)
    unused = monitored.get_json("/accstatz?unused=1")["account_statz"]
    assert sorted(each["acc"] for each in unused) == ["$G", "$SYS"]


def test_jsz_without_jetstream(monitored: Monitored) -> None:
    page = monitored.get_json("/jsz")

    assert_shape(page, {**JSZ, "disabled": bool})
    assert page["disabled"] is True
    assert page["config"] == {"max_memory": 0, "max_storage": 0}


def test_jsz_and_varz_with_jetstream(start_monitored: Callable[..., Monitored], tmp_path: Path) -> None:
    monitored = start_monitored(["-js", "-sd", str(tmp_path)])
    config = {"max_memory": int, "max_storage": int, "store_dir": str, "sync_interval": int, "strict": bool}
    limits = {"default_max_consumers": int}

    page = monitored.get_json("/jsz")
    varz = monitored.get_json("/varz")["jetstream"]
    detail = monitored.get_json("/jsz?accounts=true")["account_details"]

    assert_shape(page, {**JSZ, "config": config, "limits": limits})
    assert (page["accounts"], page["total"], page["api"]["level"]) == (1, 1, 5)
    assert page["config"]["store_dir"] == str(tmp_path / "jetstream")
    assert_shape(varz, {"config": config, "stats": JETSTREAM_FIGURES, "limits": limits})
    assert [each["name"] for each in detail] == ["$G"]
    assert_shape(detail[0], {"name": str, "id": str, **JETSTREAM_FIGURES})
    assert monitored.get_json("/jsz?acc=$G")["account_details"] == detail
    assert "account_details" not in monitored.get_json("/jsz?acc=nowhere")
    assert monitored.get("/healthz?account=nowhere").status == 404
    assert monitored.get("/healthz?account=nowhere").json == {
        "status": "unavailable",
        "error": 'JetStream account "nowhere" not found',
    }
    assert monitored.get("/healthz?account=nowhere&details=1").json == {
        "status": "error",
        "errors": [{"type": "ACCOUNT", "account": "nowhere", "error": 'JetStream account "nowhere" not found'}],
    }
    assert monitored.get("/healthz?js-enabled-only=1&account=nowhere").status == 200


def test_pages_of_clusters_are_empty(monitored: Monitored) -> None:
    routez = monitored.get_json("/routez?subs=detail")
    gatewayz = monitored.get_json("/gatewayz?accs=1&gw_name=x&acc_name=y")
    leafz = monitored.get_json("/leafz?subs=1&acc=x")

    assert_shape(routez, {"server_id": str, "server_name": str, "now": str, "num_routes": int, "routes": list})
    assert_shape(gatewayz, {"server_id": str, "now": str, "outbound_gateways": {}, "inbound_gateways": {}})
    assert_shape(leafz, {"server_id": str, "now": str, "leafnodes": int, "leafs": list})
    assert (routez["routes"], leafz["leafs"]) == ([], [])
    assert monitored.get_json("/ipqueuesz") == {}
    assert (monitored.get("/raftz").status, monitored.get("/raftz").text) == (404, "No Raft nodes registered")


def test_variables_for_developers(monitored: Monitored) -> None:
    answer = monitored.get("/debug/vars")

    page = json.loads(answer.body)
    assert answer.status == 200
    assert set(page) == {"cmdline", "memstats"}
    assert page["memstats"]["Sys"] > 0


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/connz?sort=bogus", "invalid sorting option: bogus"),
        ("/connz?sort=stop", "sort by stop only valid on closed connections"),
        ("/connz?sort=reason", "sort by reason only valid on closed connections"),
        ("/connz?sort=reason&state=all", "sort by reason only valid on closed connections"),
        ("/connz?state=foo", "Error decoding state for foo"),
        (
            "/connz?limit=x",
            """Error decoding int for 'limit': strconv.Atoi: parsing "x": invalid syntax""",
        ),
        (
            "/connz?limit=99999999999999999999",
            """Error decoding int for 'limit': strconv.Atoi: parsing "99999999999999999999": value out of range""",
        ),
        ("/connz?offset=1.5", """Error decoding int for 'offset': strconv.Atoi: parsing "1.5": invalid syntax"""),
        ("/connz?cid=-1", """Error decoding uint64 for 'cid': strconv.ParseUint: parsing "-1": invalid syntax"""),
        (
            "/connz?auth=maybe",
            """Error decoding boolean for 'auth': strconv.ParseBool: parsing "maybe": invalid syntax""",
        ),
        (
            "/connz?subs=x%22y%01%C3%A9",
            """Error decoding boolean for 'subs': strconv.ParseBool: parsing "x\\"y\\x01é": invalid syntax""",
        ),
        ("/connz?a=%zz&cid=x", """Error decoding uint64 for 'cid': strconv.ParseUint: parsing "x": invalid syntax"""),
        ("/subsz?subs=2", """Error decoding boolean for 'subs': strconv.ParseBool: parsing "2": invalid syntax"""),
        ("/subsz?test=a.*", "invalid test subject, must be valid publish subject: a.*"),
        ("/subsz?test=a..b", "invalid test subject, must be valid publish subject: a..b"),
        ("/accountz?acc=nope", "Account nope does not exist"),
        (
            "/accstatz?unused=x",
            """Error decoding boolean for 'unused': strconv.ParseBool: parsing "x": invalid syntax""",
        ),
        (
            "/jsz?accounts=z",
            """Error decoding boolean for 'accounts': strconv.ParseBool: parsing "z": invalid syntax""",
        ),
        ("/jsz?leader-only=1", "filtered response: not leader"),
        (
            "/leafz?subs=detail",
            """Error decoding boolean for 'subs': strconv.ParseBool: parsing "detail": invalid syntax""",
        ),
        ("/gatewayz?accs=x", """Error decoding boolean for 'accs': strconv.ParseBool: parsing "x": invalid syntax"""),
        ("/routez?subs=x", """Error decoding boolean for 'subs': strconv.ParseBool: parsing "x": invalid syntax"""),
        ("/ipqueuesz?all=x", """Error decoding boolean for 'all': strconv.ParseBool: parsing "x": invalid syntax"""),
        (
            "/healthz?js-enabled-only=x",
            """Error decoding boolean for 'js-enabled-only': strconv.ParseBool: parsing "x": invalid syntax""",
        ),
    ],
)
def test_what_cannot_be_answered_is_refused_in_the_same_words(monitored: Monitored, path: str, text: str) -> None:
    answer = monitored.get(path)

    assert (answer.status, answer.text) == (400, text)


@pytest.mark.parametrize(
    ("path", "status", "body"),
    [
        ("/healthz", 200, {"status": "ok"}),
        ("/healthz?js-enabled-only=true", 200, {"status": "ok"}),
        ("/healthz?js-server-only=true&details=true", 200, {"status": "ok"}),
        ("/healthz?account=A&stream=S&consumer=C", 200, {"status": "ok"}),
        (
            "/healthz?stream=S",
            400,
            {"status": "error", "error": '"account" must not be empty when checking stream health'},
        ),
        (
            "/healthz?consumer=C",
            400,
            {"status": "error", "error": '"stream" must not be empty when checking consumer health'},
        ),
        (
            "/healthz?stream=S&details=1",
            400,
            {
                "status": "error",
                "errors": [{"type": "BAD_REQUEST", "error": '"account" must not be empty when checking stream health'}],
            },
        ),
    ],
)
def test_healthz(monitored: Monitored, path: str, status: int, body: dict[str, Any]) -> None:
    answer = monitored.get(path)

    assert (answer.status, answer.json) == (status, body)


# Who it is


def test_who_a_client_is_is_shown_only_when_asked(start_monitored: Callable[..., Monitored]) -> None:
    monitored = start_monitored(["--user", "ada", "--pass", "s3cr3t"])
    with monitored.server.client() as client, monitored.server.client() as stranger:
        client.connect(user="ada", **{"pass": "s3cr3t"})
        stranger.send_connect(user="ada", **{"pass": "wrong-s3cr3t"})
        stranger.expect(b"-ERR 'Authorization Violation'\r\n")
        monitored.wait_for_connections("?state=closed", 1)

        plain = monitored.connections("")
        shown = monitored.connections("?auth=1")
        closed = monitored.connections("?auth=1&state=closed")

        assert "authorized_user" not in plain[0]
        assert (shown[0]["authorized_user"], shown[0]["name_tag"]) == ("ada", "$G")
        assert "account" not in shown[0]
        assert closed[0]["reason"] == "Authentication Failure"
        assert monitored.get_json("/varz")["auth_required"] is True
        assert len(monitored.connections("?user=ada&auth=1")) == 1
        assert monitored.connections("?user=bob&auth=1") == []
        for path in ("/varz", "/connz?auth=1&subs=detail&state=all", "/accountz?acc=$G", "/accstatz?unused=1", "/jsz"):
            assert b"s3cr3t" not in monitored.get(path).body


def test_accounts_are_shown_apart(start_monitored: Callable[..., Monitored]) -> None:
    monitored = start_monitored(
        config="""
        server_name: here
        server_tags: ["a:b"]
        server_metadata: { x: y }
        max_subscriptions: 99
        accounts {
          A { users [ { user: ada, password: first } ] }
          B { users [ { user: bob, password: second } ] }
        }
        """
    )
    with monitored.server.client() as ada, monitored.server.client() as bob:
        ada.connect(user="ada", **{"pass": "first"})
        bob.connect(user="bob", **{"pass": "second"})

        varz = monitored.get_json("/varz")
        shown = monitored.connections("?auth=1")
        of_a = monitored.get_json("/connz?acc=A&auth=1")
        used = monitored.get_json("/accstatz")["account_statz"]

        assert (varz["server_name"], varz["tags"], varz["metadata"]) == ("here", ["a:b"], {"x": "y"})
        assert varz["max_subscriptions"] == 99
        assert re.match(r"^sha256:[0-9a-f]{64}$", varz["config_digest"])
        assert [(entry["authorized_user"], entry["account"], entry["name_tag"]) for entry in shown] == [
            ("ada", "A", "A"),
            ("bob", "B", "B"),
        ]
        assert (of_a["total"], [entry["authorized_user"] for entry in of_a["connections"]]) == (1, ["ada"])
        assert sorted(each["acc"] for each in used) == ["A", "B"]
        assert sorted(monitored.get_json("/accountz")["accounts"]) == ["$G", "$SYS", "A", "B"]
        assert monitored.get_json("/accountz?acc=A")["account_detail"]["client_connections"] == 1


# Start and end


def test_a_taken_monitoring_port_ends_the_start(monitored: Monitored, server_kind: str, tmp_path: Path) -> None:
    port = str(monitored.port)
    ended = run_to_end(server_kind, ["-a", "127.0.0.1", "-p", "-1", "-m", port], tmp_path)

    assert ended.returncode == 1
    assert (
        "[FTL] Can't start monitoring: can't listen to the monitor port: "
        f"listen tcp 127.0.0.1:{port}: bind: address already in use" in ended.stderr
    )


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        (["-ms", "-1"], "TLS cert and key required for HTTPS"),
        (["-m", "18222", "-ms", "18223"], "can't specify both HTTP (18222) and HTTPs (18223) ports"),
    ],
)
def test_monitoring_that_cannot_be_served_ends_the_start(
    server_kind: str, tmp_path: Path, flags: list[str], text: str
) -> None:
    ended = run_to_end(server_kind, ["-a", "127.0.0.1", "-p", "-1", *flags], tmp_path)

    assert ended.returncode == 1
    assert f"[FTL] Can't start monitoring: {text}" in ended.stderr


def test_the_line_of_the_pages_comes_before_that_of_clients(monitored: Monitored) -> None:
    log = monitored.server.log()

    assert log.index("Starting http monitor on ") < log.index("Listening for client connections on ")


def test_health_ends_in_lame_duck_mode(start_monitored: Callable[..., Monitored]) -> None:
    monitored = start_monitored()
    with monitored.server.client() as client:
        client.connect()
        monitored.server.signal(signal.SIGUSR2)
        monitored.server.wait_for_log("Entering lame duck mode")
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while (answer := monitored.get("/healthz")).status == 200:
            assert time.monotonic() < deadline

    # It would take its time.
    monitored.server.signal(signal.SIGKILL)
    assert answer.status == 500
    assert answer.json == {"status": "error", "error": "failed to be ready for connections after 1ms: server"}
    assert 'Healthcheck failed: "failed to be ready for connections after 1ms: server"' in monitored.server.log()


def test_pages_below_a_base_path(start_monitored: Callable[..., Monitored]) -> None:
    monitored = start_monitored(config='http_base_path: "/nats"')

    assert monitored.get_json("/nats/varz")["http_base_path"] == "/nats"
    assert monitored.get("/nats").status == 200
    assert monitored.get("/varz").status == 404


def test_pages_over_https_and_clients_over_tls(start_server: Callable[..., ServerProcess], tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    certificate = authority.server()
    files = ["--tlscert", str(certificate.certificate_file), "--tlskey", str(certificate.key_file)]
    monitored = monitored_of(start_server(["-ms", "-1", "--tls", *files]), tls=authority.context())

    with monitored.server.client() as client:
        client.encrypt(authority.context(version=ssl.TLSVersion.TLSv1_3))
        client.connect(name="secured")
        varz = monitored.get_json("/varz")
        entry = monitored.connections("")[0]

    assert "Starting https monitor on 127.0.0.1:" in monitored.server.log()
    assert_shape(varz, {**VARZ, "tls_required": bool, "tls_cert_not_after": str})
    assert (varz["tls_required"], varz["http_port"], varz["https_port"] != 0) == (True, 0, True)
    assert (entry["tls_version"], entry["tls_cipher_suite"][:4]) == ("1.3", "TLS_")
