"""The flags of `jetlake kv add` and `edit`: fields of a bucket's configuration."""

from typing import Any

import msgspec

from jetlake.kv.config import BucketConfig, Origin, Republish
from jetlake.presentation.quantities import SECOND
from jetlake.presentation.settings import STORAGES, Kind, Setting

EDIT_SETTINGS = (
    Setting("--history", "history", Kind.NUMBER, "Revisions kept of each key, 1 to 64."),
    Setting("--ttl", "ttl_s", Kind.TIME, "Remove values after this time (0: keep them)."),
    Setting("--max-value-size", "max_value_bytes", Kind.SIZE, "Largest value."),
    Setting("--max-bucket-size", "max_bytes", Kind.SIZE, "Largest size of the whole bucket."),
    Setting("--description", "description", Kind.TEXT, "What the bucket is for."),
    Setting("--replicas", "replicas", Kind.NUMBER, "Copies in a cluster, 1 to 5."),
    Setting("--compress", "compression", Kind.SWITCH, "Compress the files of the bucket."),
    Setting("--marker-ttl", "limit_marker_ttl_s", Kind.TIME, "Leave markers of expired keys, for this time."),
    Setting("--direct", "allow_direct", Kind.SWITCH, "Let every server of a cluster answer reads."),
    Setting("--republish-source", "republish.source", Kind.TEXT, "Republish these subjects; all unless given."),
    Setting(
        "--republish-destination", "republish.destination", Kind.TEXT, "Republish stored messages to this subject."
    ),
    Setting("--republish-headers", "republish.headers_only", Kind.SWITCH, "Republish without the values."),
    Setting("--cluster", "placement.cluster", Kind.TEXT, "Place the bucket in this cluster."),
    Setting("--tags", "placement.tags", Kind.TEXTS, "Place the bucket on servers with these tags."),
    Setting("--metadata", "metadata", Kind.PAIRS, "Your own notes about the bucket."),
)
"""What can be changed later."""

ADD_SETTINGS = (
    *EDIT_SETTINGS,
    Setting("--storage", "storage", Kind.CHOICE, "Keep values in files or in memory.", STORAGES),
    Setting("--key-ttl", "key_ttl", Kind.SWITCH, "Let keys have a TTL of their own, as by default."),
    Setting("--mirror", "mirror", Kind.TEXT, "Be a read-only copy of this bucket."),
    Setting("--mirror-domain", "mirror_domain", Kind.TEXT, "The domain that the mirrored bucket is in."),
    Setting("--source", "sources", Kind.TEXTS, "Copy these buckets into this one."),
)

_TIMES = ("ttl_s", "limit_marker_ttl_s")


def config_of(bucket: str, settings: dict[str, Any]) -> BucketConfig:
    """Return the configuration of a new bucket. Raises `ConfigurationError`."""
    return changed(BucketConfig(bucket=bucket), settings)


def changed(config: BucketConfig, settings: dict[str, Any]) -> BucketConfig:
    """Return a configuration with what the flags say. Raises `ConfigurationError`."""
    fields: dict[str, Any] = {}
    republish: dict[str, Any] = {}
    placement = dict(config.placement or {})
    domain = settings.get("mirror_domain", "")
    for name, value in settings.items():
        section, _, field = name.partition(".")
        if section == "republish" and field:
            republish[field] = value
        elif section == "placement" and field:
            placement[field] = value
        elif name in _TIMES:
            fields[name] = value / SECOND
        elif name == "mirror":
            fields[name] = Origin(bucket=value, api_prefix=f"$JS.{domain}.API" if domain else "")
        elif name == "sources":
            fields[name] = tuple(Origin(bucket=each) for each in value)
        elif name != "mirror_domain":
            fields[name] = value
    if republish:
        before = msgspec.structs.asdict(config.republish) if config.republish else {"destination": ""}
        fields["republish"] = Republish(**(before | republish))
    if placement:
        fields["placement"] = placement
    return msgspec.structs.replace(config, **fields)
