"""Kubernetes manifests of jetstream.nats.io, with the defaults that their definitions have there.

Read are `Stream`, `Consumer`, `StreamTemplate`, `KeyValue` and `ObjectStore` of v1beta1 and v1beta2, alone or in a
`List`. What says how a controller reaches its server, or guards the object in Kubernetes, is left out; other
kinds of objects are passed over.

Invariant: a manifest is read as it is written. Where that is probably not what its writer meant, a warning says so.
"""

from collections.abc import Callable
from typing import Any

from jetlake.iac import builders
from jetlake.iac.conversion import read_fields
from jetlake.iac.declaration import Declaration, Resource
from jetlake.iac.fields import CONSUMER, KEY_VALUE, OBJECT_STORE, STREAM, TEMPLATE, Field, word_of
from jetlake.located.nodes import Mapping, Node, SourceLocation, refusal
from jetlake.suggestions import suggestion

GROUP = "jetstream.nats.io"
VERSIONS = ("v1beta1", "v1beta2")

_OF_THE_CONTROLLER = frozenset(
    ("account", "creds", "nkey", "servers", "tls", "tlsfirst", "jsdomain", "preventdelete", "preventupdate")
)
_KINDS: dict[str, tuple[tuple[Field, ...], str, Callable[[dict[str, Any], SourceLocation], Resource], str]] = {
    "Stream": (STREAM, "a stream", builders.stream, "name"),
    "Consumer": (CONSUMER, "a consumer", builders.consumer, "durable_name"),
    "StreamTemplate": (TEMPLATE, "a template", builders.template, "name"),
    "KeyValue": (KEY_VALUE, "a key-value bucket", builders.key_value, "bucket"),
    "ObjectStore": (OBJECT_STORE, "an object store", builders.object_store, "bucket"),
}
_SHORTEST_ACK_WAIT_NS = 1_000


def is_manifest(node: Node) -> bool:
    """Return whether a document is an object of Kubernetes."""
    return isinstance(node.value, dict) and {"apiVersion", "kind"} <= node.value.keys()


def read_manifest(node: Node, declaration: Declaration) -> None:
    """Add what a manifest declares. Raises `ConfigurationError`."""
    mapping = node.mapping
    kind, version = mapping["kind"].text, mapping["apiVersion"].text
    if kind == "List" and "items" in mapping:
        for item in mapping["items"].items:
            if not is_manifest(item):
                raise refusal(
                    item.location, "an item of a List is an object of Kubernetes: give it apiVersion and kind"
                )
            read_manifest(item, declaration)
        return
    group, _, number = version.rpartition("/")
    if group != GROUP:
        declaration.warn(node.location, f"a {kind} of {version} is left out: it is not one of {GROUP}")
        return
    if number not in VERSIONS:
        raise refusal(mapping["apiVersion"].location, f"{version} is not known: {' and '.join(VERSIONS)} are")
    if kind == "Account":
        declaration.warn(node.location, "an Account is left out: it says how a controller reaches its server")
        return
    if kind not in _KINDS:
        raise refusal(mapping["kind"].location, f"{GROUP} has no kind {kind!r}{suggestion(kind, list(_KINDS))}")
    resource = _read(node, kind)
    declaration.add(resource)
    if kind == "Stream":
        builders.warn_of_single_tokens(declaration, resource)
    if kind in ("Stream", "StreamTemplate"):
        _warn_of_memory(mapping, resource, declaration)


def _read(node: Node, kind: str) -> Resource:
    mapping = node.mapping
    if "spec" not in mapping:
        raise refusal(node.location, f"a {kind} has no spec: write what it is to be under `spec`")
    fields, what, build, name_field = _KINDS[kind]
    spec = mapping["spec"]
    body = {key: child for key, child in spec.mapping.items() if word_of(key) not in _OF_THE_CONTROLLER}
    body = {key: _flat(child) for key, child in body.items()}
    if kind == "StreamTemplate":
        outer = {key: child for key, child in body.items() if word_of(key) in ("name", "maxstreams")}
        inner = {key: child for key, child in body.items() if key not in outer}
        body = {**outer, "stream": Node(inner, spec.location)}
    config = read_fields(Node(body, spec.location), fields, what)
    metadata = mapping["metadata"].mapping if "metadata" in mapping else {}
    if not config.get(name_field) and "name" in metadata:
        config[name_field] = metadata["name"].text
    _put_defaults(kind, config)
    return build(config, node.location)


def _put_defaults(kind: str, config: dict[str, Any]) -> None:
    if kind == "Stream":
        config.setdefault("storage", "memory")
    elif kind == "StreamTemplate":
        config["stream"].setdefault("storage", "memory")
    elif kind == "Consumer":
        config.setdefault("ack_policy", "none")
        # The definition's default is one nanosecond, which the controller takes for none.
        if config.get("ack_wait", 0) < _SHORTEST_ACK_WAIT_NS:
            config.pop("ack_wait", None)
    elif kind in ("KeyValue", "ObjectStore"):
        config.setdefault("storage", "file")


def _flat(node: Node) -> Node:
    """Return a value with what Kubernetes writes side by side, the way to another account, as the API has it."""
    if isinstance(node.value, list):
        return Node([_flat(child) for child in node.value], node.location)
    if not isinstance(node.value, dict):
        return node
    made: Mapping = dict(node.value)
    external = {name: made.pop(key) for key, name in _EXTERNAL.items() if key in made}
    if external:
        made["external"] = Node(external, node.location)
    return Node(made, node.location)


_EXTERNAL = {"externalApiPrefix": "api", "externalDeliverPrefix": "deliver"}


def _warn_of_memory(mapping: Mapping, resource: Resource, declaration: Declaration) -> None:
    if not any(word_of(key) == "storage" for key in mapping["spec"].mapping):
        declaration.warn(
            resource.location,
            f"{resource.title} names no storage: Kubernetes takes memory, and its messages are gone after a restart; "
            "write storage: file to keep them",
        )
