"""Terraform's resources of the provider `jetstream`: what its files declare, with that provider's defaults.

Read are `jetstream_stream`, `jetstream_consumer`, `jetstream_kv_bucket`, `jetstream_obj_bucket`,
`jetstream_stream_template`, and the `variable` and `locals` they refer to, with the values that files beside them give
to variables. Durations without a unit are seconds.

Invariant: a reference is followed to a value, or refused; nothing else is mistaken for a value.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from jetlake.iac import builders, preview
from jetlake.iac.conversion import SECONDS, flag, read_fields
from jetlake.iac.declaration import Declaration, Resource
from jetlake.iac.fields import CONSUMER, KEY_VALUE, OBJECT_STORE, STREAM, TEMPLATE, Field
from jetlake.iac.hcl import Block, evaluate, read_blocks
from jetlake.iac.hcl_tokens import Token
from jetlake.iac.terraform_values import Values, is_values_file, second_of_a_name
from jetlake.located.nodes import Mapping as Nodes
from jetlake.located.nodes import Node, SourceLocation, refusal
from jetlake.suggestions import suggestion

IDENTIFIER_PREFIXES = ("JETSTREAM_STREAM_", "JETSTREAM_KV_", "JETSTREAM_OBJ_")
"""How the provider begins the identifiers of what it has made."""

TEMPLATE_TYPE = "jetstream_stream_template"

_IGNORED_BLOCKS = ("terraform", "provider", "output")
_META = ("depends_on", "provider", "lifecycle", "timeouts")
_LOOPS = ("count", "for_each", "dynamic")
_SINGLE_BLOCKS = ("mirror", "external", "consumer")

_STREAM_DEFAULTS: dict[str, Any] = {"allow_direct": True, "duplicate_window": builders.DUPLICATE_WINDOW_NS}
_CONSUMER_DEFAULTS: dict[str, Any] = {"ack_policy": "explicit", "max_ack_pending": 20_000}
_KEY_VALUE_DEFAULTS: dict[str, Any] = {"history": 5}


@dataclass(frozen=True)
class _Type:
    """How one type of resource is read."""

    fields: tuple[Field, ...]
    what: str
    defaults: Mapping[str, Any]
    build: Callable[[dict[str, Any], SourceLocation], Resource]


_TYPES = {
    "jetstream_stream": _Type(STREAM, "a stream", _STREAM_DEFAULTS, builders.stream),
    "jetstream_consumer": _Type(CONSUMER, "a consumer", _CONSUMER_DEFAULTS, builders.consumer),
    "jetstream_kv_bucket": _Type(KEY_VALUE, "a key-value bucket", _KEY_VALUE_DEFAULTS, builders.key_value),
    "jetstream_obj_bucket": _Type(OBJECT_STORE, "an object store", {}, builders.object_store),
    TEMPLATE_TYPE: _Type(TEMPLATE, "a template", {}, builders.template),
}


def read_terraform(
    sources: Mapping[str, str], declaration: Declaration, given: Mapping[str, str], environment: Mapping[str, str]
) -> None:
    """Add everything that files declare; they see each other, as those of one folder do for Terraform.

    `sources` are texts by file: of `.tf` files, and of the files that give values to their variables.
    """
    try:
        _Module(sources, given, environment).add_to(declaration)
    except RecursionError as error:
        raise refusal(SourceLocation(", ".join(sources)), "values refer to each other too deeply") from error


class _Module:
    """The files of one folder."""

    def __init__(self, sources: Mapping[str, str], given: Mapping[str, str], environment: Mapping[str, str]) -> None:
        values = {file: source for file, source in sources.items() if is_values_file(PurePath(file).name)}
        self._values = Values(values, given, environment)
        self._resources: dict[tuple[str, str], Block] = {}
        self._variables: dict[str, Block] = {}
        self._locals: dict[str, list[Token]] = {}
        # The references that are being followed.
        self._path: list[list[str]] = []
        for file, source in sources.items():
            for block in read_blocks(source, file) if file not in values else ():
                self._add_block(block)

    def add_to(self, declaration: Declaration) -> None:
        for name, node in self._values.of_files.items():
            if name not in self._variables:
                hint = suggestion(name, list(self._variables))
                declaration.warn(node.location, f"{name} is left out: there is no variable {name!r}{hint}")
        for (kind, _), block in self._resources.items():
            if kind not in _TYPES:
                declaration.warn(
                    block.location, f"a resource {kind} is left out: it is neither a stream nor a consumer"
                )
                continue
            resource = self._resource(_TYPES[kind], kind, block)
            declaration.add(resource)
            if resource.label == builders.STREAM_LABEL:
                builders.warn_of_single_tokens(declaration, resource)

    def _add_block(self, block: Block) -> None:
        if block.kind == "resource" and len(block.labels) == 2:
            kind, name = block.labels
            if (kind, name) in self._resources:
                raise second_of_a_name(f"{kind}.{name}", block.location, self._resources[kind, name].location)
            if kind.startswith("jetstream_") and kind not in (*_TYPES, "jetstream_kv_entry"):
                raise refusal(block.location, f"{kind} is not a type of resource{suggestion(kind, list(_TYPES))}")
            self._resources[kind, name] = block
        elif block.kind == "variable" and len(block.labels) == 1:
            first = self._variables.setdefault(block.labels[0], block)
            if first is not block:
                raise second_of_a_name(f"var.{block.labels[0]}", block.location, first.location)
        elif block.kind == "locals" and not block.labels:
            for name, words in block.attributes.items():
                if name in self._locals:
                    raise second_of_a_name(f"local.{name}", words[0].location, self._locals[name][0].location)
                self._locals[name] = words
        elif block.kind not in _IGNORED_BLOCKS:
            raise refusal(block.location, f"a block {block.kind} is not read: write resources, variables and locals")

    def _resource(self, kind: _Type, name: str, block: Block) -> Resource:
        body = self._body(block)
        if name == "jetstream_consumer":
            body = _consumer(body)
        elif name == TEMPLATE_TYPE:
            outer = {key: child for key, child in body.items() if key in ("name", "max_streams")}
            inner = _flat({key: child for key, child in body.items() if key not in outer}, block.location)
            body = {**outer, "stream": Node(inner, block.location)}
        else:
            body = _flat(body, block.location)
        config = read_fields(Node(body, block.location), kind.fields, kind.what, SECONDS)
        defaults = kind.defaults
        if config.get("deliver_subject") and config.get("ack_policy") == "none":
            defaults = {key: value for key, value in defaults.items() if key != "max_ack_pending"}
        return kind.build({**defaults, **config}, block.location)

    def _body(self, block: Block) -> Nodes:
        body: Nodes = {}
        for name, words in block.attributes.items():
            if name in _LOOPS:
                raise refusal(words[0].location, f"{name} is not read: write each resource by itself")
            if name not in _META:
                value = evaluate(words, self._resolve)
                body[name] = Node(value.value, words[0].location)
        for inner in block.blocks:
            if inner.kind in _LOOPS:
                raise refusal(inner.location, f"{inner.kind} is not read: write each block by itself")
            if inner.kind in _META:
                continue
            node = Node(self._body(inner), inner.location)
            if inner.kind in _SINGLE_BLOCKS:
                if inner.kind in body:
                    raise refusal(inner.location, f"{inner.kind} stands twice in one block: remove one of them")
                body[inner.kind] = node
            else:
                before = body[inner.kind].value if inner.kind in body else []
                body[inner.kind] = Node([*before, node], inner.location)
        return body

    def _resolve(self, path: list[str], location: SourceLocation) -> Node:
        if path in self._path:
            raise refusal(location, f"{'.'.join(path)} refers to itself")
        self._path.append(path)
        try:
            match path:
                case ["var", name]:
                    return self._variable(name, location)
                case ["local", name] if name in self._locals:
                    return evaluate(self._locals[name], self._resolve)
                case [kind, name, attribute] if (kind, name) in self._resources:
                    return self._attribute(self._resources[kind, name], attribute, location)
                case [kind, name, _] if kind.startswith("jetstream_"):
                    names = [other for other_kind, other in self._resources if other_kind == kind]
                    raise refusal(location, f"there is no {kind} {name!r}{suggestion(name, names)}")
        finally:
            self._path.pop()
        raise refusal(location, f"{'.'.join(path)} is not known here: write the value itself")

    def _variable(self, name: str, location: SourceLocation) -> Node:
        if name not in self._variables:
            raise refusal(location, f"there is no variable {name!r}{suggestion(name, list(self._variables))}")
        attributes = self._variables[name].attributes
        found = self._values.find(name, attributes.get("type"), location)
        if found is not None:
            return found
        if "default" not in attributes:
            raise refusal(
                location, f"the variable {name!r} has no value: give --var {name}=…, set TF_VAR_{name}, or a default"
            )
        return evaluate(attributes["default"], self._resolve)

    def _attribute(self, block: Block, attribute: str, location: SourceLocation) -> Node:
        wanted = "name" if attribute == "id" and "name" in block.attributes else attribute
        if wanted not in block.attributes:
            raise refusal(location, f"{'.'.join(block.labels)} says no {attribute}: write the value itself")
        return evaluate(block.attributes[wanted], self._resolve)


def _consumer(body: Nodes) -> Nodes:
    made = dict(preview.consumer(Node(body, SourceLocation(""))).mapping)
    owner = made.pop("stream_id", None)
    if owner is not None:
        made["stream"] = Node(_without_prefix(owner.text), owner.location)
    return made


def _without_prefix(identifier: str) -> str:
    for prefix in IDENTIFIER_PREFIXES:
        if identifier.startswith(prefix):
            return identifier.removeprefix(prefix)
    return identifier


def _flat(body: Nodes, location: SourceLocation) -> Nodes:
    """Return the fields of a stream or bucket; what the provider writes side by side belongs together in the API."""
    made = dict(body)
    if "ack" in made:
        acknowledges = made.pop("ack")
        if acknowledges.value is not None:
            made["no_ack"] = Node(not flag(acknowledges, "ack"), acknowledges.location)
    for record, fields in {
        "placement": {"placement_cluster": "cluster", "placement_tags": "tags", "placement_preferred": "preferred"},
        "republish": {
            "republish_source": "src",
            "republish_destination": "dest",
            "republish_headers_only": "headers_only",
        },
        "consumer_limits": {"max_ack_pending": "max_ack_pending", "inactive_threshold": "inactive_threshold"},
    }.items():
        inner = {name: made.pop(key) for key, name in fields.items() if key in made}
        if inner:
            made[record] = Node(inner, next(iter(inner.values())).location)
    transform = made.get("subject_transform")
    if transform is not None and isinstance(transform.value, list):
        if len(transform.value) != 1:
            raise refusal(transform.location, "a stream has one subject_transform: remove the others")
        made["subject_transform"] = transform.value[0]
    assert location.file, "a body is one of a file"
    return made
