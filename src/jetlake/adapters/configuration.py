"""Adapters as people configure them: five ways to write the same options.

| written as                         | known by                                                   |
|------------------------------------|------------------------------------------------------------|
| Puppet's hash in YAML or JSON      | `adapters:`, `choria::broker::adapters:`, or the hash alone |
| Puppet code                        | `class{"choria::broker": adapters => {…}}`                  |
| Choria's flat keys                 | `plugin.choria.adapters = node_data`                        |
| a block of nats.conf               | `choria { adapters { … } }`; the caller parses the file     |

Invariant: a mistake in one adapter is reported with its name and leaves the others as they are.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import yaml

from jetlake.adapters.options import AdapterOptions, read_adapter
from jetlake.adapters.puppet import parse_manifest
from jetlake.choria.settings import ChoriaSettings, parse_settings, read_text
from jetlake.errors import ConfigurationError
from jetlake.suggestions import suggestion

__all__ = ["AdaptersConfiguration", "read_file", "read_hash", "read_text_as"]

PREFIX = "plugin.choria.adapter."
LIST_KEY = "plugin.choria.adapters"
PORT_KEY = "plugin.choria.stats_port"
HIERA_KEY = "choria::broker::adapters"

CONNECTION_KEYS = (
    "server",
    "user",
    "password",
    "token",
    "credentials",
    "nkey",
    "tls_ca",
    "tls_certificate",
    "tls_key",
    "tls_first",
)
"""How the process connects, in a file of ours; flags of the command line go before them."""

ADAPTERS_MAX = 1_000
"""In one process: each has some twenty connections."""

ParseConf = Callable[[Path], dict[str, Any]]


class AdaptersConfiguration(msgspec.Struct, frozen=True, kw_only=True):
    """What a file says: adapters that can run, the mistakes in those that cannot, and what concerns all of them."""

    adapters: tuple[AdapterOptions, ...]
    problems: tuple[str, ...] = ()
    connection: dict[str, Any] = {}
    # Where metrics are served; None = nowhere.
    metrics_port: int | None = None
    identity: str = ""


def read_file(path: Path, parse_conf: ParseConf | None = None) -> AdaptersConfiguration:
    """Read a file in any of the formats. Raises `ConfigurationError`.

    `parse_conf` reads nats-server's format; without it such files are refused.
    """
    text = read_text(path)
    if path.suffix == ".pp" or text.lstrip().startswith("class"):
        return read_hash(parse_manifest(text, str(path)))
    if path.suffix in (".yaml", ".yml", ".json"):
        return read_text_as("yaml", text, str(path))
    if any(line.strip().startswith(("plugin.", "main_collective", "collectives")) for line in text.splitlines()):
        return read_text_as("flat", text, str(path))
    if text.lstrip().startswith("{") and path.suffix not in (".conf", ".cfg"):
        return read_text_as("yaml", text, str(path))
    if parse_conf is None:
        raise ConfigurationError(f"{path} is in no format that adapters are configured in: write YAML or JSON")
    return read_hash(parse_conf(path))


def read_text_as(form: str, text: str, source: str) -> AdaptersConfiguration:
    """Read a text in a known format, `yaml` (JSON too) or `flat`. Raises `ConfigurationError`."""
    if form == "flat":
        return read_flat(ChoriaSettings(parse_settings(text, source), source))
    try:
        content = json.loads(text) if text.lstrip().startswith("{") else yaml.safe_load(text)
    except ValueError as error:
        raise ConfigurationError(f"{source} is not JSON: {error}") from error
    except yaml.YAMLError as error:
        raise ConfigurationError(f"{source} is not YAML: {' '.join(str(error).split())}") from error
    except RecursionError as error:
        raise ConfigurationError(f"{source} is nested too deeply to be a configuration") from error
    if not isinstance(content, dict):
        raise ConfigurationError(f"{source} holds no map: write adapters: and the adapters below it")
    return read_hash(content)


def read_hash(content: dict[str, Any]) -> AdaptersConfiguration:
    """Read a hash as Puppet has it, with what surrounds it. Raises `ConfigurationError` when there is none."""
    inner = content.get("choria")
    if isinstance(inner, dict):
        content = inner
    named = content.get("adapters", content.get(HIERA_KEY))
    if named is None and content and all(isinstance(each, dict) and "ingest" in each for each in content.values()):
        named, content = content, {}
    if not isinstance(named, dict) or not named:
        raise ConfigurationError(
            "no adapter is configured: write adapters: with a name, and below it type, ingest and stream"
        )
    if len(named) > ADAPTERS_MAX:
        raise ConfigurationError(f"{len(named):,} adapters are too many for one process: at most {ADAPTERS_MAX:,}")
    adapters, problems = _read_all(named)
    known = {"adapters", HIERA_KEY, "metrics_port", "identity", "streams", *CONNECTION_KEYS}
    problems += [f"{key} is unknown{suggestion(str(key), known)}" for key in content if key not in known]
    port = content.get("metrics_port")
    if port is not None and (not isinstance(port, int) or isinstance(port, bool) or not 0 <= port < 65_536):
        problems.append(f"metrics_port is {port!r}: write a port, or 0 for a random one")
        port = None
    return AdaptersConfiguration(
        adapters=tuple(adapters),
        problems=tuple(problems),
        connection={key: content[key] for key in CONNECTION_KEYS if content.get(key) is not None},
        metrics_port=port,
        identity=str(content.get("identity") or ""),
    )


def read_flat(settings: ChoriaSettings) -> AdaptersConfiguration:
    """Read the keys of a broker's own file, of which all that is not about adapters is left alone."""
    names = settings.texts(LIST_KEY)
    if not names:
        raise ConfigurationError(f"{settings.source} configures no adapter: write {LIST_KEY} = NAME")
    named: dict[str, Any] = {}
    for name in names:
        prefix = f"{PREFIX}{name}."
        found: dict[str, Any] = {}
        for key, value in settings.values.items():
            if key.startswith(prefix):
                *outer, last = key.removeprefix(prefix).split(".")
                target = found
                for part in outer:
                    target = target.setdefault(part, {})
                    if not isinstance(target, dict):
                        raise ConfigurationError(f"{settings.source}: {key} is a value and a group at once")
                target[last] = value
        named[name] = found
    adapters, problems = _read_all(named)
    listed = tuple(f"{PREFIX}{name}." for name in names)
    strays = sorted({key.split(".")[3] for key in settings.values if key.startswith(PREFIX)} - set(names))
    problems += [f"adapter {name} has settings and is not in {LIST_KEY}" for name in strays if listed]
    connection: dict[str, Any] = {}
    servers = settings.texts("plugin.choria.middleware_hosts")
    if servers:
        connection["server"] = ",".join(servers)
    port = settings.number(PORT_KEY, 0)
    return AdaptersConfiguration(
        adapters=tuple(adapters),
        problems=tuple(problems),
        connection=connection,
        metrics_port=port or None,
        identity=settings.text("identity"),
    )


def _read_all(named: dict[str, Any]) -> tuple[list[AdapterOptions], list[str]]:
    adapters: list[AdapterOptions] = []
    problems: list[str] = []
    for name, content in named.items():
        try:
            adapters.append(read_adapter(str(name), content))
        except ConfigurationError as error:
            problems += str(error).splitlines()
    return adapters, problems
