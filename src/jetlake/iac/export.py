"""Writes what a server has as a declaration, without anything a server would put in by itself.

Invariant: what is written, applied to an empty server, makes the same streams, consumers and templates again.
"""

import json
from collections.abc import Callable
from typing import Any, Literal

import yaml

from jetlake.errors import ConfigurationError
from jetlake.governor.layout import DEFAULT_COLLECTIVE, settings_of
from jetlake.iac import builders
from jetlake.iac.actual import Actual, ActualResource
from jetlake.iac.fields import CONSUMER, DEAD_LETTERS_KEY, GOVERNOR, STREAM, Field, Kind
from jetlake.iac.normal import DIALECT_KEY, TEMPLATE_KEY, normal_consumer, normal_stream, normal_template, own_metadata
from jetlake.iac.toml_writer import write_toml
from jetlake.located.nodes import SourceLocation
from jetlake.located.yaml_text import bare_value
from jetlake.units import write_duration, write_size

Format = Literal["yaml", "json", "toml"]

_NOWHERE = SourceLocation("export")
_KEY_VALUE = {
    "max_msgs_per_subject": "history",
    "max_age": "ttl",
    "max_bytes": "max_bytes",
    "max_msg_size": "max_value_size",
    "subject_delete_marker_ttl": "limit_marker_ttl",
}
_OBJECT_STORE = {"max_age": "ttl", "max_bytes": "max_bytes"}
_OF_BUCKETS = ("description", "storage", "num_replicas", "placement", "republish")


def export(actual: Actual, *, project: str = "", streams: list[str] | None = None) -> dict[str, Any]:
    """Return the declaration; of one project only what it has made, of some streams only these and their consumers."""
    document: dict[str, Any] = {"project": project} if project else {}
    consumers_of = actual.consumers_by_stream()
    for found in actual.found.values():
        kind, _, name = found.key
        if kind != "stream" or (streams and name not in streams) or (project and found.owner != project):
            continue
        # What a template has made comes again by itself.
        if TEMPLATE_KEY in (found.config.get("metadata") or {}):
            continue
        section, written = _written_stream(found)
        consumers = [_written_consumer(each, found) for each in consumers_of.get(name, []) if not each.is_ephemeral]
        if section == "streams" and consumers:
            written["consumers"] = consumers
        elif consumers:
            document.setdefault("consumers", []).extend({"stream": name, **consumer} for consumer in consumers)
        document.setdefault(section, []).append(written)
    templates = [] if project or streams else [each for key, each in actual.found.items() if key[0] == "template"]
    if templates:
        document["templates"] = [_written_template(each) for each in templates]
    # Consumers of buckets read better after them.
    if "consumers" in document:
        document["consumers"] = document.pop("consumers")
    escaped: dict[str, Any] = _escaped(document)
    return escaped


def write(document: dict[str, Any], format: Format) -> str:  # noqa: A002 - the word users know
    """Return a declaration as text."""
    if format == "json":
        return json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    if format == "toml":
        return write_toml(document)
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)


class _Dumper(yaml.SafeDumper):
    """Writes texts so that they are read as texts by YAML 1.2 too, and indents lists."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002
        super().increase_indent(flow, False)


def _text_node(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = None if isinstance(bare_value(text), str) else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text_node)


def _written_stream(found: ActualResource) -> tuple[str, dict[str, Any]]:
    """Return the section a stream belongs to, and what is written there."""
    own = _needed(found.config, STREAM, normal_stream)
    special = _as_bucket(found, own) or _as_governor(found, own)
    if special is not None:
        return special
    metadata = own.get("metadata", {})
    dead_letters = metadata.pop(DEAD_LETTERS_KEY, "")
    written = _written({"name": found.key[2], **own, "metadata": metadata}, STREAM)
    return "streams", written | ({"dead_letters": dead_letters} if dead_letters else {})


def _as_bucket(found: ActualResource, own: dict[str, Any]) -> tuple[str, dict[str, Any]] | None:
    """Return a stream as the bucket it is; None if it is not one, or if a declaration cannot express it."""
    name = found.key[2]
    for prefix, section, build, renamed in (
        (builders.KEY_VALUE_PREFIX, "key_value", builders.key_value, _KEY_VALUE),
        (builders.OBJECT_STORE_PREFIX, "object_stores", builders.object_store, _OBJECT_STORE),
    ):
        if not name.startswith(prefix) or name == prefix:
            continue
        config: dict[str, Any] = {"bucket": name.removeprefix(prefix)}
        config |= {key: own[key] for key in _OF_BUCKETS if key in own}
        config |= {new: own[key] for key, new in renamed.items() if key in own}
        if own.get("compression") == "s2":
            config["compression"] = True
        if section == "key_value":
            config |= _copies_of(own, config["bucket"])
            if own.get("allow_msg_ttl") and "limit_marker_ttl" not in config:
                config["key_ttl"] = True
        if own.get("metadata"):
            config["metadata"] = own["metadata"]
        if config.get("history") == 1:
            del config["history"]
        made = build(dict(config), _NOWHERE)
        if normal_stream(made.config) == normal_stream(found.config):
            return section, _written(config, (*STREAM, *_BUCKET_FIELDS))
    return None


def _copies_of(own: dict[str, Any], bucket: str) -> dict[str, Any]:
    """Return the buckets that one copies, by the names of buckets, without the transforms that a builder adds."""
    found: dict[str, Any] = {}
    if own.get("mirror"):
        found["mirror"] = {**own["mirror"], "name": own["mirror"]["name"].removeprefix(builders.KEY_VALUE_PREFIX)}
    for source in own.get("sources") or []:
        name = source["name"].removeprefix(builders.KEY_VALUE_PREFIX)
        usual = [{"src": f"$KV.{name}.>", "dest": f"$KV.{bucket}.>"}]
        kept = {key: value for key, value in source.items() if key != "subject_transforms" or value != usual}
        found.setdefault("sources", []).append({**kept, "name": name})
    return found


def _as_governor(found: ActualResource, own: dict[str, Any]) -> tuple[str, dict[str, Any]] | None:
    """Return a stream as the governor it is; None if it is not one, or has something a governor does not."""
    try:
        settings = settings_of(found.config)
    except ConfigurationError:
        return None
    config: dict[str, Any] = {"name": settings.name, "capacity": settings.capacity, "expires": settings.expires_ns}
    if settings.replicas > 1:
        config["num_replicas"] = settings.replicas
    if settings.collective != DEFAULT_COLLECTIVE:
        config["collective"] = settings.collective
    if own.get("metadata"):
        config["metadata"] = own["metadata"]
    if normal_stream(builders.governor(dict(config), _NOWHERE).config) != normal_stream(found.config):
        return None
    return "governors", _written(config, GOVERNOR)


_BUCKET_FIELDS = (
    Field("ttl", Kind.DURATION),
    Field("limit_marker_ttl", Kind.DURATION),
    Field("max_value_size", Kind.SIZE),
)


def _written_consumer(found: ActualResource, stream: ActualResource) -> dict[str, Any]:
    owner = normal_stream(stream.config)
    own = _needed(found.config, CONSUMER, lambda config: normal_consumer(config, owner))
    # A pause ends by itself, so it is not part of a consumer's definition. The ack policy always is.
    own.pop("pause_until", None)
    policy = {"ack_policy": found.config.get("ack_policy", "none")}
    return _written({"name": found.key[2], **policy, **own}, CONSUMER)


def _written_template(found: ActualResource) -> dict[str, Any]:
    inner = found.config.get("config", {})
    own = _needed(inner, STREAM, lambda config: normal_template({"config": config}))
    limit = {"max_streams": found.config["max_streams"]} if found.config.get("max_streams") else {}
    return {"name": found.key[2], **limit, "stream": _written(own, STREAM)}


def _needed(
    config: dict[str, Any], fields: tuple[Field, ...], normal: Callable[[dict[str, Any]], dict[str, Any]]
) -> dict[str, Any]:
    """Return the fields without which a server would make something else."""
    names = [field.name for field in fields if field.name not in ("name", "durable_name", "stream", "dead_letters")]
    # The name decides the subjects of a stream that says none.
    identity = {"name": config.get("name", "")}
    own = {name: config[name] for name in names if name in config} | {"metadata": own_metadata(config.get("metadata"))}
    wanted = normal(identity | own)
    defaults = {field.name: field.default for field in fields}
    own = {name: value for name, value in own.items() if value not in (None, defaults[name])}
    for name in list(own):
        without = {key: value for key, value in own.items() if key != name}
        if normal(identity | without) == wanted:
            own = without
    # It makes no difference to a comparison, but it does to clients.
    dialect = (config.get("metadata") or {}).get(DIALECT_KEY)
    return own | ({"metadata": {**own.get("metadata", {}), DIALECT_KEY: dialect}} if dialect else {})


def _written(config: dict[str, Any], fields: tuple[Field, ...]) -> dict[str, Any]:
    """Return a configuration with durations and sizes as people write them."""
    known = {field.name: field for field in fields}
    written = {name: _written_value(known.get(name), value) for name, value in config.items()}
    return {name: value for name, value in written.items() if value not in (None, {}, [])}


def _written_value(field: Field | None, value: Any) -> Any:
    kind = field.kind if field else None
    if kind is Kind.DURATION and value:
        return write_duration(value)
    if kind is Kind.DURATIONS:
        return [write_duration(item) for item in value]
    if kind is Kind.SIZE:
        return write_size(value)
    if field and kind is Kind.RECORD and value:
        return _written(value, field.fields)
    if field and kind is Kind.RECORDS:
        return [_written(item, field.fields) for item in value]
    return value


def _escaped(value: Any) -> Any:
    """Keep texts, and names that are written as keys, from being taken for ones with variables."""
    if isinstance(value, dict):
        return {_escaped(key): _escaped(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_escaped(item) for item in value]
    return value.replace("${", "$${") if isinstance(value, str) else value
