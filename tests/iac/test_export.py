"""What runs, written so that it can be made again."""

from datetime import UTC, datetime

import pytest

from jetlake.iac.actual import Actual
from jetlake.iac.actual import ActualResource as Found
from jetlake.iac.executor import carry_out
from jetlake.iac.export import export, write
from jetlake.iac.normal import normal_consumer, normal_stream
from jetlake.iac.toml_writer import write_toml
from jetlake.located.yaml_text import read_yaml
from tests.iac.servers import actual_of, ask, declared, planned, request
from tests.iac.test_executor import EVERYTHING
from tests.iac.test_normal import CONSUMERS, STREAMS


def make(server, declaration):
    plan = planned(declaration, actual_of(server))
    outcome = ask(server, lambda api: carry_out(api, plan, lambda _step: None, datetime.now(UTC)))
    assert outcome.is_complete, (outcome.reason, outcome.differs)


def configurations(server):
    def own(config):
        metadata = {key: value for key, value in config.get("metadata", {}).items() if not key.startswith("_nats.")}
        return {**config, "metadata": metadata}

    return {key: own(found.config) for key, found in actual_of(server).found.items()}


def meanings(server):
    """The configurations without how they are spelled: the zone of a moment, the sign of a percentage."""
    streams = {key: normal_stream(config) for key, config in configurations(server).items() if key[0] == "stream"}
    return streams | {
        key: normal_consumer(config, streams["stream", "", key[1]])
        for key, config in configurations(server).items()
        if key[0] == "consumer"
    }


def clear(server):
    for name in ask(server, lambda api: api.stream_names()):
        request(server, f"STREAM.DELETE.{name}")


@pytest.mark.parametrize("ending", ["yaml", "json", "toml"])
def test_what_is_written_makes_the_same_again(server, tmp_path, ending):
    make(server, declared(tmp_path, EVERYTHING))
    before = configurations(server)
    text = write(export(actual_of(server), project="shop"), ending)
    clear(server)

    make(server, declared(tmp_path, text, f"exported.{ending}"))

    assert configurations(server) == before
    assert len(before) == 12


@pytest.mark.parametrize("case", STREAMS)
def test_every_stream_is_made_the_same_again(server, tmp_path, case):
    for origin in ("ORIGIN", "OTHER"):
        request(server, f"STREAM.CREATE.{origin}", {"name": origin, "allow_direct": True})
    request(server, "STREAM.CREATE.S", {"name": "S", **STREAMS[case]})
    before = meanings(server)
    text = write(export(actual_of(server)), "yaml")
    clear(server)

    make(server, declared(tmp_path, text))

    assert meanings(server) == before


def test_every_consumer_is_made_the_same_again(server, tmp_path):
    request(server, "STREAM.CREATE.S", {"name": "S", "subjects": ["S.>"]})
    for number, config in enumerate(CONSUMERS.values()):
        name = f"c{number}"
        body = {"stream_name": "S", "config": {"durable_name": name, **config, "metadata": {"n": name}}}
        request(server, f"CONSUMER.CREATE.S.{name}", body)
    before = meanings(server)
    text = write(export(actual_of(server)), "yaml")
    clear(server)

    make(server, declared(tmp_path, text))

    assert meanings(server) == before


def test_what_servers_put_in_is_left_out(server):
    request(server, "STREAM.CREATE.A", {"name": "A", "max_age": 3600 * 10**9, "max_bytes": 1024**2})
    body = {"stream_name": "A", "config": {"durable_name": "c", "ack_policy": "explicit", "ack_wait": 5 * 10**9}}
    request(server, "CONSUMER.CREATE.A.c", body)
    request(server, "CONSUMER.CREATE.A", {"stream_name": "A", "config": {"ack_policy": "none"}})

    assert export(actual_of(server)) == {
        "streams": [
            {
                "name": "A",
                "max_bytes": "1MiB",
                "max_age": "1h",
                "consumers": [{"name": "c", "ack_policy": "explicit", "ack_wait": "5s"}],
            }
        ]
    }


def test_some_streams_can_be_chosen(server):
    for name in ("A", "B"):
        request(server, f"STREAM.CREATE.{name}", {"name": name})

    assert export(actual_of(server), streams=["B"]) == {"streams": [{"name": "B"}]}
    assert export(actual_of(server), project="shop") == {"project": "shop"}


def test_the_dialect_of_a_stream_is_kept_and_what_a_template_made_is_not():
    def stream(name, **metadata):
        return Found(("stream", "", name), {"name": name, "subjects": [name], "metadata": metadata})

    old = stream("OLD", **{"jetlake.dialect": "2020", "_nats.level": "0"})
    made = stream("MADE", **{"jetlake.dialect": "2020", "jetlake.template": "t"})
    actual = Actual({found.key: found for found in (old, made)})

    assert export(actual) == {"streams": [{"name": "OLD", "metadata": {"jetlake.dialect": "2020"}}]}


def test_a_text_is_never_taken_for_something_else(tmp_path):
    texts = ["no", "1e3", "0o17", "${HOME}", "1_000", "~", "a: b", "2026-01-01", "- x", "ü\n", '"q"\\', "true", ""]
    document = {"streams": [{"name": "A", "metadata": {f"k.{number}": text for number, text in enumerate(texts)}}]}
    escaped = {
        "streams": [
            {
                "name": "A",
                "metadata": {
                    key: text.replace("${", "$${") for key, text in document["streams"][0]["metadata"].items()
                },
            }
        ]
    }

    for ending in ("yaml", "json", "toml"):
        declaration = declared(tmp_path, write(escaped, ending), f"texts.{ending}")
        assert declaration.resources[0].config["metadata"] == document["streams"][0]["metadata"], ending


@pytest.mark.parametrize("ending", ["yaml", "json", "toml"])
def test_names_with_braces_come_back_as_they_were(tmp_path, ending):
    found = [
        Found(
            ("stream", "", "KV_${B}"),
            {
                "name": "KV_${B}",
                "subjects": ["$KV.${B}.>"],
                "allow_rollup_hdrs": True,
                "allow_direct": True,
                "deny_delete": True,
                "discard": "new",
                "max_msgs_per_subject": 1,
            },
        ),
        Found(("consumer", "KV_${B}", "c${"), {"durable_name": "c${", "name": "c${", "ack_policy": "explicit"}),
        Found(
            ("stream", "", "${A}"),
            {
                "name": "${A}",
                "subjects": ["${A}.>"],
                "metadata": {"${K}": "${V}", "jetlake.iac": "${P}", "jetlake.dead_letters": "KV_${B}"},
            },
        ),
    ]
    document = write(export(Actual({each.key: each for each in found})), ending)

    declaration = declared(tmp_path, document, f"all.{ending}")

    assert {resource.key for resource in declaration.resources} == {each.key for each in found}
    metadata = next(each.config["metadata"] for each in declaration.resources if each.name == "${A}")
    assert metadata == {"${K}": "${V}", "jetlake.dead_letters": "KV_${B}"}


def test_toml_has_settings_before_tables():
    text = write_toml({"streams": [{"name": "A", "consumers": [{"name": "c", "backoff": ["1s"]}]}], "project": "p"})

    assert text == ('project = "p"\n\n[[streams]]\nname = "A"\n\n[[streams.consumers]]\nname = "c"\nbackoff = ["1s"]\n')


def test_yaml_reads_well():
    assert write({"streams": [{"name": "A", "subjects": ["a.>"]}]}, "yaml") == (
        "streams:\n  - name: A\n    subjects:\n      - a.>\n"
    )
    assert read_yaml(write({"a": "1:30"}, "yaml"), "f")[0].plain() == {"a": "1:30"}
