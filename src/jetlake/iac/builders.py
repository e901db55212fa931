"""From converted fields to resources: what a stream, a consumer, a bucket, a governor or a template is to the API.

Every reader ends here, so that a bucket declared in YAML and one declared for Terraform are the same stream.

Invariant: a resource made here has a configuration that names nothing but fields of the API.
"""

from collections.abc import Iterable
from typing import Any

from jetlake.errors import ConfigurationError
from jetlake.governor.layout import DEFAULT_COLLECTIVE, GovernorSettings, stream_config
from jetlake.iac.declaration import STREAM_PREFIXES, Declaration, Resource, check_name
from jetlake.iac.fields import DEAD_LETTERS_KEY, SECOND_NS
from jetlake.iac.subjects import ends_in_one_token
from jetlake.located.nodes import SourceLocation, refusal

STREAM_LABEL = "stream"
KEY_VALUE_LABEL = "bucket"
OBJECT_STORE_LABEL = "object store"
DEAD_LETTERS_LABEL = "dead letters"
GOVERNOR_LABEL = "governor"

KEY_VALUE_PREFIX = STREAM_PREFIXES[KEY_VALUE_LABEL]
OBJECT_STORE_PREFIX = STREAM_PREFIXES[OBJECT_STORE_LABEL]
DEAD_LETTERS_SUBJECT = "dead.>"

HISTORY_MAX = 64
"""Values that a bucket keeps of a key at most; clients refuse more."""

DUPLICATE_WINDOW_NS = 120 * SECOND_NS
"""The window of a stream that names none."""

_SHARED = ("description", "storage", "num_replicas", "placement", "metadata", "republish")


def stream(config: dict[str, Any], location: SourceLocation, label: str = STREAM_LABEL) -> Resource:
    """Return a stream; its `dead_letters` become metadata."""
    dead_letters = config.pop("dead_letters", None)
    if dead_letters:
        config["metadata"] = {**config.get("metadata", {}), DEAD_LETTERS_KEY: dead_letters}
    return Resource("stream", config.get("name", ""), config, location, label=label)


def dead_letters(config: dict[str, Any], location: SourceLocation) -> Resource:
    """Return a stream that keeps dead letters, where nothing else is said all of them."""
    config.setdefault("subjects", [DEAD_LETTERS_SUBJECT])
    return stream(config, location, DEAD_LETTERS_LABEL)


def consumer(config: dict[str, Any], location: SourceLocation, stream_name: str = "") -> Resource:
    """Return a durable consumer: one that goes when nobody uses it cannot be kept by a declaration."""
    owner = config.pop("stream", "") or stream_name
    name = config.pop("name", "")
    durable = config.pop("durable_name", "")
    if name and durable and name != durable:
        raise refusal(
            location, f"a consumer has the name {name!r} and the durable name {durable!r}: they must be the same"
        )
    name = name or durable
    if not owner:
        raise refusal(location, f"consumer {name or '?'} names no stream: give it one, `stream: ORDERS`")
    if stream_name and owner != stream_name:
        raise refusal(
            location, f"consumer {name or '?'} stands in stream {stream_name} and names {owner}: remove one of them"
        )
    if config.get("filter_subject") and config.get("filter_subjects"):
        raise refusal(
            location, f"consumer {owner}/{name} has filter_subject and filter_subjects: put all into filter_subjects"
        )
    return Resource("consumer", name, {"durable_name": name, **config}, location, stream=owner)


def key_value(config: dict[str, Any], location: SourceLocation) -> Resource:
    """Return the stream that is this bucket."""
    bucket = config.get("bucket", "")
    check_name(KEY_VALUE_LABEL, bucket, location)
    history = config.get("history", 1) or 1
    if not 1 <= history <= HISTORY_MAX:
        raise refusal(location, f"bucket {bucket} keeps {history} values of a key: 1 to {HISTORY_MAX} are allowed")
    made = _bucket(config, KEY_VALUE_PREFIX + bucket, [f"$KV.{bucket}.>"])
    made |= {"max_msgs_per_subject": history, "deny_delete": True, "discard": "new"}
    if config.get("max_value_size"):
        made["max_msg_size"] = config["max_value_size"]
    if config.get("key_ttl"):
        made["allow_msg_ttl"] = True
    if config.get("limit_marker_ttl"):
        made |= {"allow_msg_ttl": True, "subject_delete_marker_ttl": config["limit_marker_ttl"]}
    _take_origins(config, made, bucket)
    # Some clients allow lifetimes of single messages in every bucket, some only where they are asked to; a bucket
    # that allows them cannot stop doing so.
    unmanaged = frozenset() if "allow_msg_ttl" in made else frozenset(("allow_msg_ttl",))
    return Resource("stream", made["name"], made, location, label=KEY_VALUE_LABEL, unmanaged=unmanaged)


def object_store(config: dict[str, Any], location: SourceLocation) -> Resource:
    """Return the stream that is this object store."""
    bucket = config.get("bucket", "")
    check_name(OBJECT_STORE_LABEL, bucket, location)
    made = _bucket(config, OBJECT_STORE_PREFIX + bucket, [f"$O.{bucket}.C.>", f"$O.{bucket}.M.>"])
    made["discard"] = "new"
    # Clients disagree on it, and it makes no difference to them.
    return Resource(
        "stream", made["name"], made, location, label=OBJECT_STORE_LABEL, unmanaged=frozenset(("max_msgs_per_subject",))
    )


def governor(config: dict[str, Any], location: SourceLocation) -> Resource:
    """Return the stream that is this governor."""
    try:
        settings = GovernorSettings(
            name=config.get("name", ""),
            capacity=config.get("capacity", 0),
            expires_ns=config.get("expires", 0),
            replicas=config.get("num_replicas", 1),
            collective=config.get("collective") or DEFAULT_COLLECTIVE,
        )
    except ConfigurationError as error:
        raise refusal(location, str(error)) from error
    made = stream_config(settings)
    if config.get("metadata"):
        made["metadata"] = config["metadata"]
    # The server chooses the window; one that a user has set is left alone.
    return Resource(
        "stream", made["name"], made, location, label=GOVERNOR_LABEL, unmanaged=frozenset(("duplicate_window",))
    )


def template(config: dict[str, Any], location: SourceLocation) -> Resource:
    """Return a template: what streams are made from when something is published to its subjects."""
    inner = config.pop("stream", None) or {}
    inner.pop("name", None)
    if not inner.get("subjects"):
        raise refusal(location, f"template {config.get('name', '?')} has no subjects: give its stream some")
    if config.get("max_streams", 0) < 1:
        raise refusal(
            location, f"template {config.get('name', '?')} says no max_streams: say how many it may make at most"
        )
    return Resource("template", config.get("name", ""), {**config, "config": inner}, location)


def warn_of_single_tokens(declaration: Declaration, resource: Resource) -> None:
    """Warn of subjects that take one token where everything below may have been meant."""
    for subject in resource.config.get("subjects", []):
        if ends_in_one_token(subject):
            stem = subject.removesuffix(".*")
            declaration.warn(
                resource.location,
                f"{resource.title} takes {subject!r}: that is exactly one more token, {stem}.a but not {stem}.a.b; "
                f"if everything below was meant, write {stem}.>",
            )


def warn_of_unacknowledged(declaration: Declaration, resources: Iterable[Resource]) -> None:
    """Warn of consumers from which clients ask for messages that then count as done at once."""
    for resource in resources:
        if resource.kind == "consumer" and not {"ack_policy", "deliver_subject"} & resource.config.keys():
            declaration.warn(
                resource.location,
                f"{resource.title} has no ack_policy: the default is none, a message counts as done when it is sent; "
                "write ack_policy: explicit, or ack_policy: none if that is meant",
            )


def _bucket(config: dict[str, Any], name: str, subjects: list[str]) -> dict[str, Any]:
    made = {"name": name, "subjects": subjects, "allow_rollup_hdrs": True, "allow_direct": True}
    made |= {key: config[key] for key in (*_SHARED, "max_bytes") if key in config}
    if config.get("ttl"):
        made |= {"max_age": config["ttl"], "duplicate_window": min(DUPLICATE_WINDOW_NS, config["ttl"])}
    if config.get("compression"):
        made["compression"] = "s2"
    return made


def _take_origins(config: dict[str, Any], made: dict[str, Any], bucket: str) -> None:
    """Let a bucket copy others; they may be named as buckets or as streams."""
    mirror = config.get("mirror")
    if mirror or config.get("sources"):
        # Servers remember no ids for copies by default; clients always set the window.
        made.setdefault("duplicate_window", DUPLICATE_WINDOW_NS)
    if mirror:
        made.pop("subjects")
        made |= {"mirror": {**mirror, "name": _stream_of(mirror.get("name", ""))}, "mirror_direct": True}
    sources = config.get("sources")
    if sources:
        made["sources"] = []
        for source in sources:
            origin = _stream_of(source.get("name", ""))
            moved = {"src": f"$KV.{origin.removeprefix(KEY_VALUE_PREFIX)}.>", "dest": f"$KV.{bucket}.>"}
            made["sources"].append({"subject_transforms": [moved], **source, "name": origin})


def _stream_of(bucket: str) -> str:
    return bucket if bucket.startswith(KEY_VALUE_PREFIX) else KEY_VALUE_PREFIX + bucket
