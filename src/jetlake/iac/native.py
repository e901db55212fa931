"""Jetlake's own format: one document with sections, or one that is a single thing and says its `kind`.

```yaml
project: shop
defaults:
  stream: {storage: file, max_age: 30d}
  consumer: {ack_policy: explicit}
streams:
  ORDERS:
    subjects: [orders.>]
    consumers:
      worker: {ack_wait: 1m}
```

A section is a list of things with names, or a mapping from names to things. A document that is a configuration of the
API itself, as `nats stream info --json` prints one, is read too.
"""

from collections.abc import Callable, Iterator
from typing import Any

from jetlake.iac import builders, preview
from jetlake.iac.conversion import read_fields
from jetlake.iac.declaration import Declaration, Resource
from jetlake.iac.fields import CONSUMER, GOVERNOR, KEY_VALUE, OBJECT_STORE, STREAM, TEMPLATE, Field, word_of
from jetlake.located.nodes import Mapping, Node, refusal
from jetlake.suggestions import suggestion

SETTINGS = ("project", "defaults", "variables")
"""What a document may say besides things."""

_SECTIONS = {
    "streams": "stream",
    "consumers": "consumer",
    "key_value": "key_value",
    "object_stores": "object_store",
    "governors": "governor",
    "templates": "template",
    "dead_letters": "dead_letters",
}
_OTHER_NAMES = {
    "keyvalues": "key_value",
    "keyvaluebuckets": "key_value",
    "kv": "key_value",
    "objects": "object_stores",
    "objectstore": "object_stores",
    "stream": "streams",
    "consumer": "consumers",
    "template": "templates",
}

_KINDS: dict[str, tuple[tuple[Field, ...], str, str]] = {
    "stream": (STREAM, "a stream", "name"),
    "consumer": (CONSUMER, "a consumer", "name"),
    "key_value": (KEY_VALUE, "a key-value bucket", "bucket"),
    "object_store": (OBJECT_STORE, "an object store", "bucket"),
    "governor": (GOVERNOR, "a governor", "name"),
    "template": (TEMPLATE, "a template", "name"),
    "dead_letters": (STREAM, "a stream of dead letters", "name"),
}
"""The fields of each kind, what it is called, and which field its name is."""

_BUILDERS: dict[str, Callable[..., Resource]] = {
    "stream": builders.stream,
    "consumer": builders.consumer,
    "key_value": builders.key_value,
    "object_store": builders.object_store,
    "governor": builders.governor,
    "template": builders.template,
    "dead_letters": builders.dead_letters,
}
_RAW_STREAM = {"subjects", "retention", "storage", "maxmsgs", "maxage", "maxbytes", "mirror", "sources", "numreplicas"}
"""One of these beside a name makes a document the configuration of a stream."""


class Defaults:
    """What things have that they do not say themselves; the first file that says something wins over none."""

    def __init__(self) -> None:
        self._by_kind: dict[str, dict[str, Any]] = {}

    def read(self, node: Node) -> None:
        for key, child in node.mapping.items():
            kind = _section_kind(key, child, what="defaults")
            fields, what, _ = _KINDS[kind]
            known = self._by_kind.setdefault(kind, {})
            for name, value in read_fields(child, fields, f"the defaults of {what}").items():
                if known.setdefault(name, value) != value:
                    raise refusal(
                        child.location, f"the default {name} of {what} is given twice, differently: remove one of them"
                    )

    def applied(self, kind: str, config: dict[str, Any]) -> dict[str, Any]:
        known = {key: value for key, value in self._by_kind.get(kind, {}).items() if not _contradicts(key, config)}
        metadata = {**known.get("metadata", {}), **config.get("metadata", {})}
        return {**known, **config, **({"metadata": metadata} if metadata else {})}


def is_settings(key: str) -> bool:
    return word_of(key) in SETTINGS


def read_document(node: Node, declaration: Declaration, defaults: Defaults) -> None:
    """Add everything a document declares. Raises `ConfigurationError`."""
    mapping = {key: child for key, child in node.mapping.items() if not is_settings(key)}
    body = Node(mapping, node.location)
    first = len(declaration.resources)
    if "kind" in mapping:
        kind = _section_kind(mapping.pop("kind").text, node, what="kinds")
        _add(kind, body, declaration, defaults)
    elif _is_raw(mapping):
        _refuse_sections(mapping)
        _read_raw(body, declaration, defaults)
    else:
        for key, child in mapping.items():
            kind = _section_kind(key, child, what="sections")
            for item in _items(child, _KINDS[kind][2]):
                _add(kind, item, declaration, defaults)
    builders.warn_of_unacknowledged(declaration, declaration.resources[first:])


def _add(kind: str, node: Node, declaration: Declaration, defaults: Defaults) -> None:
    fields, what, _ = _KINDS[kind]
    own = dict(node.mapping)
    consumers = own.pop("consumers", None) if kind in ("stream", "dead_letters") else None
    if kind == "template" and "stream" not in own and "config" not in own:
        own = _nested_template(own, node)
    config = defaults.applied(kind, read_fields(Node(own, node.location), fields, what))
    resource = _BUILDERS[kind](config, node.location)
    declaration.add(resource)
    if consumers is not None:
        for item in _items(consumers, "name"):
            inner = defaults.applied("consumer", read_fields(item, CONSUMER, "a consumer"))
            declaration.add(builders.consumer(inner, item.location, resource.name))


def _nested_template(own: Mapping, node: Node) -> Mapping:
    """A template may say its stream's fields beside its own."""
    outer = {key: child for key, child in own.items() if word_of(key) in ("name", "maxstreams")}
    inner = {key: child for key, child in own.items() if key not in outer}
    return {**outer, "stream": Node(inner, node.location)}


def _items(node: Node, name_field: str) -> Iterator[Node]:
    """Yield the things of a section, each with its name among its fields."""
    if node.value is None:
        return
    if isinstance(node.value, list):
        yield from node.value
        return
    for name, child in node.mapping.items():
        own = {} if child.value is None else child.mapping
        if name_field in own and own[name_field].value != name:
            raise refusal(
                own[name_field].location, f"{name!r} calls itself {own[name_field].value!r}: remove one of the names"
            )
        yield Node({**own, name_field: Node(name, child.location)}, child.location)


def _known_kind(key: str) -> str | None:
    word = word_of(key)
    sections = {word_of(name): kind for name, kind in _SECTIONS.items()}
    kinds = {word_of(kind): kind for kind in _KINDS}
    other = _OTHER_NAMES.get(word)
    return sections.get(word) or kinds.get(word) or (_SECTIONS[other] if other else None)


def _section_kind(key: str, node: Node, *, what: str) -> str:
    found = _known_kind(key)
    if found is None:
        hint = suggestion(key, [*_SECTIONS, *SETTINGS])
        raise refusal(node.location, f"{key!r} is not one of the {what}: {', '.join(_SECTIONS)}{hint}")
    return found


def _is_raw(mapping: Mapping) -> bool:
    words = {word_of(key) for key in mapping}
    is_configuration = "name" in words and bool(words & _RAW_STREAM)
    return is_configuration or ("config" in mapping and isinstance(mapping["config"].value, dict))


def _refuse_sections(mapping: Mapping) -> None:
    """Refuse sections beside a `config`: of an answer of the API nothing else is read, and they would be lost."""
    for key, child in mapping.items():
        if "config" in mapping and _known_kind(key) is not None:
            raise refusal(
                child.location,
                f"{key!r} stands beside `config`, which makes this document one configuration of the API: "
                "put it into a document of its own",
            )


def _read_raw(node: Node, declaration: Declaration, defaults: Defaults) -> None:
    """Read a configuration of the API, or an answer or a request that holds one."""
    mapping = node.mapping
    if "config" not in mapping:
        _add("stream", node, declaration, defaults)
        return
    config = mapping["config"]
    if "max_streams" in mapping:
        _add("template", node, declaration, defaults)
        return
    if "stream_name" not in mapping:
        _add("stream", config, declaration, defaults)
        return
    renamed = preview.consumer(config)
    # What a server says about a consumer names it beside its configuration.
    named = {"name": mapping["name"]} if "name" in mapping and "name" not in renamed.mapping else {}
    _add(
        "consumer",
        Node({**renamed.mapping, **named, "stream": mapping["stream_name"]}, node.location),
        declaration,
        defaults,
    )


def _contradicts(key: str, config: dict[str, Any]) -> bool:
    """Return whether a default would say a second time what a thing says in other words."""
    pairs = {"filter_subject": "filter_subjects", "filter_subjects": "filter_subject", "durable_name": "name"}
    return key in pairs and pairs[key] in config
