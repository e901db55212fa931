"""The page about JetStream on a device event bus: its subjects, its event types and its fragments of YAML."""

import asyncio
import re
from pathlib import Path

import pytest

pytest.importorskip("grpc", reason="needs the extra `devices`")

from typer.testing import CliRunner

import jetlake
from jetlake.cli.app import create
from jetlake.client.api import open_api
from jetlake.devices.settings import Settings, parse_settings
from jetlake.devices.stream import find_stream
from jetlake.devices.subjects import EVENT_TYPES, Family
from jetlake.errors import ConfigurationError
from tests.devices.samples import D1, PATTERNS, R1

DOCUMENT = (Path(__file__).parent / "documents" / "device_jetstream.md").read_text(encoding="utf-8")

FAMILY_SUBJECTS = {
    Family.LINKS: "events.{deviceID}.resource-links.{eventType}",
    Family.METADATA: "events.{deviceID}.metadata.{eventType}",
    Family.RESOURCES: "events.{deviceID}.resources.{resourceID}.{eventType}",
}


def section(title: str) -> str:
    return DOCUMENT.split(f"### {title}\n", 1)[1].split("\n## ", 1)[0].split("\n### ", 1)[0]


def fragment(title: str) -> str:
    """Return the block of YAML in a section, as it is printed."""
    return section(title).split("```yaml\n", 1)[1].split("```", 1)[0]


@pytest.mark.parametrize("family", list(Family))
def test_publisher_has_the_event_types_of_the_page(family):
    (paragraph,) = [each for each in section("Publisher").split("\n- ") if f"`{FAMILY_SUBJECTS[family]}`" in each]

    named = re.findall(r"`((?:resource|devicemetadata)[a-z]+)`", paragraph.partition("of types")[2])

    assert sorted(named) == sorted(EVENT_TYPES[family])


def test_consumers_have_the_patterns_of_the_page():
    named = re.findall(r"^- `([^`]+)`", section("Consumer"), re.MULTILINE)

    filled = [each.replace("{deviceID}", D1).replace("{resourceID}", R1) for each in named]

    # The tests of consumers subscribe to each of these on both servers.
    assert filled == [pattern for pattern, _ in PATTERNS[:-1]]


def test_fragment_of_the_service_turns_jetstream_on():
    assert parse_settings(fragment("Enable jetstream at resource-aggregate")) == Settings(jetstream=True)


def test_fragment_of_kubernetes_makes_its_stream_which_listens_to_no_event(tmp_path):
    path = tmp_path / "stream.yaml"
    path.write_text(fragment("Deploy JetStream Controller for K8S"))

    async def look(url):
        async with open_api(url) as api:
            config = (await api.request("STREAM.INFO.events"))["config"]
            with pytest.raises(ConfigurationError, match="which does not match"):
                await find_stream(api)
            return config["subjects"]

    with jetlake.Server(jetstream=True) as server:
        applied = CliRunner().invoke(create(), ["apply", str(path), "-s", server.url])
        subjects = asyncio.run(look(server.url))

    assert applied.exit_code == 0, applied.output
    assert subjects == ["events.*"]


def test_variable_of_the_bundle_is_the_one_we_read():
    from jetlake.devices.settings import VARIABLE

    assert f"`{VARIABLE}=true`" in section("Enable jetstream at bundle")
