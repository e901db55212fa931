"""Options of a node's agent: Choria's keys, or the same as YAML.

```yaml
identity: web1.example.net
server: nats://broker.example.net:4222
registration:
  interval: 5m
  file_content: {data: /etc/inventory.json, target: choria.discovery}
```

YAML is turned into Choria's flat keys first, so that both have the same meaning: `registration.interval` is
`registerinterval`, and `registration.file_content.data` is `plugin.choria.registration.file_content.data`. Maps of
other parts become keys with dots.
"""

import socket
from pathlib import Path
from typing import Any

import msgspec

from jetlake.choria.settings import ChoriaSettings, read_settings, read_text
from jetlake.choria.subjects import is_publishable
from jetlake.errors import ConfigurationError
from jetlake.shared.yaml_values import YamlError, load_yaml

__all__ = ["NodeOptions", "PublisherOptions", "RegistrationOptions", "read_node_file", "read_node_options"]

PUBLISHERS = ("file_content", "inventory_content")
REGISTRATION_PREFIX = "plugin.choria.registration."
INTERVAL_S_DEFAULT = 300.0
INTERVAL_S_MIN = 1.0
"""Between two registrations of one node: thousands of nodes do the same."""

SIZE_INTERVAL_S_DEFAULT = 30.0
COLLECTIVE_DEFAULT = "mcollective"
COMPONENT_DEFAULT = "server"
ALIVE_INTERVAL_S_DEFAULT = 1_800.0
DEPTH_MAX = 20
"""Maps within maps of a YAML file."""

_YAML_KEYS = {
    "registration.interval": "registerinterval",
    "registration.splay": "registration_splay",
    "registration.collective": "registration_collective",
    "registration.size_trigger": f"{REGISTRATION_PREFIX}size_trigger",
    "registration.size_interval": f"{REGISTRATION_PREFIX}size_interval",
    "server": "plugin.choria.middleware_hosts",
    "facts": "plugin.yaml",
    "classes": "classesfile",
    "lifecycle.component": "lifecycle.component",
    "machines.store": "plugin.choria.machine.store",
    "machines.prometheus": "plugin.choria.prometheus_textfile_directory",
    "machines.overrides": "plugin.scout.overrides",
    "submission.spool": "plugin.choria.submission.spool",
    "submission.max_spool_size": "plugin.choria.submission.max_spool_size",
}
"""The short words of YAML, and the keys they stand for."""

_SECURITY = "plugin.security."


class PublisherOptions(msgspec.Struct, frozen=True, kw_only=True):
    """One publisher. `data` is the file of file content."""

    kind: str
    target: str
    compression: bool = True
    data: str = ""


class RegistrationOptions(msgspec.Struct, frozen=True, kw_only=True):
    """When a node registers, and with what."""

    publishers: tuple[PublisherOptions, ...] = ()
    interval_s: float = INTERVAL_S_DEFAULT
    splay: bool = True
    # Publish early when the body has grown or shrunk by this many bytes; 0 = never.
    size_trigger_bytes: int = 0
    size_interval_s: float = SIZE_INTERVAL_S_DEFAULT


class NodeOptions(msgspec.Struct, frozen=True, kw_only=True):
    """One node. `settings` has all keys, for parts that know more of them."""

    identity: str
    collectives: tuple[str, ...]
    servers: tuple[str, ...]
    registration: RegistrationOptions
    settings: ChoriaSettings
    component: str = COMPONENT_DEFAULT
    raw_events: bool = False
    lifecycle_events: bool = True
    alive_interval_s: float = ALIVE_INTERVAL_S_DEFAULT
    facts_file: str = ""
    classes_file: str = ""
    certificate_file: str = ""
    key_file: str = ""
    token_file: str = ""
    seed_file: str = ""

    @property
    def main_collective(self) -> str:
        return self.collectives[0]


def read_node_file(path: Path) -> NodeOptions:
    """Read a file of keys, or YAML if its name ends so. Raises `ConfigurationError`."""
    if path.suffix in (".yaml", ".yml", ".json"):
        return read_node_options(ChoriaSettings(_flat_yaml(read_text(path), str(path)), str(path)))
    return read_node_options(read_settings(path))


def read_node_options(settings: ChoriaSettings) -> NodeOptions:
    """Return the options that keys make. Raises `ConfigurationError`."""
    collectives = settings.texts("collectives") or (settings.text("main_collective") or COLLECTIVE_DEFAULT,)
    main = settings.text("main_collective") or collectives[0]
    ordered = (main, *(each for each in collectives if each != main))
    certificate = settings.text(f"{_SECURITY}file.certificate")
    key = settings.text(f"{_SECURITY}file.key")
    token, seed = settings.text(f"{_SECURITY}choria.token_file"), settings.text(f"{_SECURITY}choria.seed_file")
    for one, other, first, second in (
        (certificate, key, f"{_SECURITY}file.certificate", f"{_SECURITY}file.key"),
        (token, seed, f"{_SECURITY}choria.token_file", f"{_SECURITY}choria.seed_file"),
    ):
        if bool(one) != bool(other):
            raise ConfigurationError(f"{settings.source}: {first} and {second} belong together: give both, or neither")
    return NodeOptions(
        identity=settings.text("identity") or socket.getfqdn(),
        collectives=ordered,
        servers=settings.texts("plugin.choria.middleware_hosts"),
        registration=_read_registration(settings, ordered[0]),
        settings=settings,
        component=settings.text("lifecycle.component") or COMPONENT_DEFAULT,
        raw_events=settings.switch("plugin.choria.legacy_lifecycle_format", default=False),
        lifecycle_events=settings.switch("lifecycle.enabled", default=True),
        alive_interval_s=settings.seconds("lifecycle.alive_interval", ALIVE_INTERVAL_S_DEFAULT),
        facts_file=settings.text("plugin.yaml"),
        classes_file=settings.text("classesfile"),
        certificate_file=certificate,
        key_file=key,
        token_file=token,
        seed_file=seed,
    )


def _read_registration(settings: ChoriaSettings, main_collective: str) -> RegistrationOptions:
    interval_s = settings.seconds("registerinterval", INTERVAL_S_DEFAULT)
    if interval_s < INTERVAL_S_MIN:
        raise settings.refusal("registerinterval", f"give at least {INTERVAL_S_MIN:g} second")
    trigger = settings.number(f"{REGISTRATION_PREFIX}size_trigger", 0)
    size_interval_s = settings.seconds(f"{REGISTRATION_PREFIX}size_interval", SIZE_INTERVAL_S_DEFAULT)
    if trigger < 0:
        raise settings.refusal(f"{REGISTRATION_PREFIX}size_trigger", "give a number of bytes, or 0 to switch it off")
    if size_interval_s <= 0:
        raise settings.refusal(f"{REGISTRATION_PREFIX}size_interval", "give more than 0 seconds")
    collective = settings.text("registration_collective") or main_collective
    return RegistrationOptions(
        publishers=tuple(_read_publisher(settings, kind, collective) for kind in settings.texts("registration")),
        interval_s=interval_s,
        splay=settings.switch("registration_splay", default=True),
        size_trigger_bytes=trigger,
        size_interval_s=size_interval_s,
    )


def _read_publisher(settings: ChoriaSettings, kind: str, collective: str) -> PublisherOptions:
    if kind not in PUBLISHERS:
        raise settings.refusal("registration", f"{kind!r} is unknown; there are {' and '.join(PUBLISHERS)}")
    prefix = f"{REGISTRATION_PREFIX}{kind}."
    target = settings.text(f"{prefix}target") or f"{collective}.broadcast.agent.registration"
    if not is_publishable(target):
        raise settings.refusal(f"{prefix}target", "it must be a subject without blanks and wildcards")
    data = settings.text(f"{prefix}data")
    if kind == "file_content" and not data:
        raise ConfigurationError(f"{settings.source}: {prefix}data is missing: name the file to publish")
    return PublisherOptions(
        kind=kind, target=target, compression=settings.switch(f"{prefix}compression", default=True), data=data
    )


def _flat_yaml(text: str, source: str) -> dict[str, str]:
    try:
        content = load_yaml(text)
    except YamlError as error:
        raise ConfigurationError(f"{source} is not YAML: {error}") from error
    if not isinstance(content, dict):
        raise ConfigurationError(f"{source} holds no map: write identity: and the other keys below each other")
    flat: dict[str, str] = {}
    _flatten(content, "", flat, source)
    registration = content.get("registration")
    if isinstance(registration, dict):
        chosen = [kind for kind in PUBLISHERS if isinstance(registration.get(kind), dict)]
        flat["registration"] = ",".join(chosen)
    return flat


def _flatten(content: dict[Any, Any], prefix: str, flat: dict[str, str], source: str, depth: int = 0) -> None:
    if depth > DEPTH_MAX:
        raise ConfigurationError(f"{source} is nested too deeply to be a configuration")
    for key, value in content.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict):
            _flatten(value, f"{name}.", flat, source, depth + 1)
        elif value is not None:
            flat[_key_of(name)] = _scalar(value, name, source)


def _key_of(name: str) -> str:
    if name in _YAML_KEYS:
        return _YAML_KEYS[name]
    kind = name.removeprefix("registration.").partition(".")[0]
    return f"{REGISTRATION_PREFIX}{name.removeprefix('registration.')}" if kind in PUBLISHERS else name


def _scalar(value: object, name: str, source: str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        if not all(isinstance(each, str | int | float) for each in value):
            raise ConfigurationError(f"{source}: {name} must be a list of texts")
        return ",".join(str(each) for each in value)
    return str(value)
