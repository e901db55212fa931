"""From a request to a response."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jetlake.monitoring import varz
from jetlake.monitoring.http_request import HttpRequest
from jetlake.monitoring.pages import Pages
from jetlake.monitoring.paths import clean_path, normal_base_path
from tests.monitoring.recorded import connection, recorded

JSON_PAGES = [
    *["/varz", "/connz", "/routez", "/gatewayz", "/leafz", "/subsz", "/subscriptionsz", "/accountz", "/accstatz"],
    *["/jsz", "/healthz", "/ipqueuesz", "/debug/vars"],
]
OTHER_PAGES = ["/", "/stacksz", "/metrics"]


class Asked:
    """The pages of a recorded server, and what they said for the log."""

    def __init__(self, base_path="", **readings):
        self.source = recorded(**readings)
        self.warnings = []
        self.pages = Pages(self.source, base_path=base_path, warn=self.warnings.append)

    def get(self, target):
        path, _, query = target.partition("?")
        return self.pages.respond(HttpRequest(method="GET", path=path, query=query))


@pytest.mark.parametrize("path", JSON_PAGES)
def test_pages_are_json_that_any_origin_may_read(path):
    response = Asked().get(path)

    assert (response.status, response.content_type) == (200, "application/json")
    assert ("Access-Control-Allow-Origin", "*") in response.headers
    json.loads(response.body)


@pytest.mark.parametrize("path", OTHER_PAGES)
def test_other_pages_answer_too(path):
    assert Asked().get(path).status == 200


def test_json_has_two_spaces_and_health_none():
    assert Asked().get("/leafz").body.startswith(b'{\n  "server_id": "NAID",\n')
    assert Asked().get("/healthz").body == b'{"status":"ok"}'


def test_pages_that_are_not_there():
    response = Asked().get("/nope")

    assert (response.status, response.content_type) == (404, "text/plain; charset=utf-8")
    assert response.body == b"404 page not found\n"
    assert Asked().get("/varz/").status == 404
    assert Asked().get("/VARZ").status == 404


def test_there_are_no_replicas():
    response = Asked().get("/raftz")

    assert (response.status, response.body) == (404, b"No Raft nodes registered")


def test_refusals_are_plain_text():
    response = Asked().get("/connz?sort=bogus")

    assert (response.status, response.content_type) == (400, "text/plain; charset=utf-8")
    assert response.body == b"invalid sorting option: bogus"
    assert response.headers == ()


@pytest.mark.parametrize(
    ("page", "parameter"),
    [
        *[("/connz", name) for name in ("auth", "subs", "offset", "limit", "cid", "state")],
        *[("/subsz", name) for name in ("subs", "offset", "limit")],
        *[("/routez", "subs"), ("/gatewayz", "subs"), ("/gatewayz", "accs"), ("/leafz", "subs"), ("/ipqueuesz", "all")],
        *[("/accstatz", "unused")],
        *[("/jsz", name) for name in ("accounts", "streams", "consumers", "direct-consumers", "config", "offset")],
        *[("/jsz", name) for name in ("limit", "leader-only", "raft", "stream-leader-only")],
        *[
            ("/healthz", name)
            for name in ("js-enabled", "js-enabled-only", "js-server-only", "js-meta-only", "details")
        ],
    ],
)
def test_every_parameter_is_checked(page, parameter):
    assert Asked().get(f"{page}?{parameter}=x").status == 400


def test_requests_are_counted_by_page():
    asked = Asked()
    for path in ("/varz", "/varz", "/subscriptionsz", "/nope", "/stacksz"):
        asked.get(path)

    assert json.loads(asked.get("/varz").body)["http_req_stats"] == {"/varz": 3, "/subsz": 1}


def test_health_has_its_status_and_a_line_in_the_log():
    asked = Asked(facts={"accepts_clients": False})

    assert asked.get("/healthz").status == 500
    assert asked.get("/healthz?details=1").status == 500
    assert b"status_code" not in asked.get("/healthz").body
    assert asked.warnings[:2] == [
        'Healthcheck failed: "failed to be ready for connections after 1ms: server"',
        "Healthcheck failed: 1 errors",
    ]
    asked.get("/healthz?stream=S")
    assert asked.warnings[-1] == r'''Healthcheck failed: "\"account\" must not be empty when checking stream health"'''


@pytest.mark.parametrize("base_path", ["/nats", "nats", "/nats/"])
def test_pages_below_a_base_path(base_path):
    asked = Asked(normal_base_path(base_path))

    assert asked.get("/nats/varz").status == 200
    assert asked.get("/nats").status == 200
    assert b'href="/nats/varz"' in asked.get("/nats").body
    for path in ("/", "/varz", "/natsvarz", "/nats/", "/nats/nats/varz"):
        assert asked.get(path).status == 404


@pytest.mark.parametrize(
    ("path", "location"),
    [
        ("//varz", "/varz"),
        ("/./varz?a=b", "/varz?a=b"),
        ("/x/../varz", "/varz"),
        ("//evil.example/%0d%0aX: y", "/evil.example/%250d%250aX%3A%20y"),
    ],
)
def test_untidy_paths_are_sent_to_the_tidy_one(path, location):
    response = Asked().get(path)

    assert response.status == 307
    assert ("Location", location) in response.headers


def test_paths_are_tidied():
    assert clean_path("/") == "/"
    assert clean_path("") == "/"
    assert clean_path("/../..") == "/"
    assert clean_path("/a//b/") == "/a/b/"
    assert normal_base_path("/") == ""


def test_a_bug_of_ours_is_logged_and_hidden_from_the_asker(monkeypatch):
    def broken(*_):
        raise RuntimeError("a secret of the implementation")

    monkeypatch.setattr(varz, "build", broken)
    asked = Asked()

    response = asked.get("/varz")

    assert (response.status, response.body) == (500, b"500 Internal Server Error")
    assert "a secret of the implementation" in asked.warnings[0]
    assert asked.get("/connz").status == 200


def test_names_of_clients_are_only_text():
    evil = '</script>"\n\x00\u2028'

    body = Asked(connections=[connection(1, name=evil)]).get("/connz").body

    assert json.loads(body)["connections"][0]["name"] == evil


@given(st.text(max_size=50), st.text(max_size=50))
def test_any_request_gets_a_response(path, query):
    asked = Asked()

    asked.get(f"/{path}?{query}")
    asked.get(f"/connz?{query}")

    assert asked.warnings == []
