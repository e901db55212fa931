"""Options of `jetlake kv add` and `edit`, and the fields of a bucket's configuration that they set.

Invariant: each option is declared once, here; the commands name it in their signatures.
"""

from typing import Annotated, Any

import msgspec
import typer

from jetlake.cli.option_values import (
    STORAGES,
    given,
    parse_choice,
    parse_duration,
    parse_pairs,
    parse_size,
    split_texts,
)
from jetlake.kv.config import BucketConfig, Origin, Republish
from jetlake.presentation.quantities import SECOND

HistoryOption = Annotated[int | None, typer.Option("--history", help="Revisions kept of each key, 1 to 64.")]
TtlOption = Annotated[
    int | None,
    typer.Option("--ttl", help="Remove values after this time (0: keep them).", metavar="TIME", parser=parse_duration),
]
MaxValueSizeOption = Annotated[
    int | None, typer.Option("--max-value-size", help="Largest value.", metavar="SIZE", parser=parse_size)
]
MaxBucketSizeOption = Annotated[
    int | None,
    typer.Option("--max-bucket-size", help="Largest size of the whole bucket.", metavar="SIZE", parser=parse_size),
]
DescriptionOption = Annotated[str | None, typer.Option("--description", help="What the bucket is for.")]
ReplicasOption = Annotated[int | None, typer.Option("--replicas", help="Copies in a cluster, 1 to 5.")]
CompressOption = Annotated[
    bool | None, typer.Option("--compress/--no-compress", help="Compress the files of the bucket.")
]
MarkerTtlOption = Annotated[
    int | None,
    typer.Option(
        "--marker-ttl", help="Leave markers of expired keys, for this time.", metavar="TIME", parser=parse_duration
    ),
]
DirectOption = Annotated[
    bool | None, typer.Option("--direct/--no-direct", help="Let every server of a cluster answer reads.")
]
RepublishSourceOption = Annotated[
    str | None, typer.Option("--republish-source", help="Republish these subjects; all unless given.")
]
RepublishDestinationOption = Annotated[
    str | None, typer.Option("--republish-destination", help="Republish stored messages to this subject.")
]
RepublishHeadersOption = Annotated[
    bool | None, typer.Option("--republish-headers/--no-republish-headers", help="Republish without the values.")
]
ClusterOption = Annotated[str | None, typer.Option("--cluster", help="Place the bucket in this cluster.")]
TagsOption = Annotated[list[str] | None, typer.Option("--tags", help="Place the bucket on servers with these tags.")]
MetadataOption = Annotated[
    list[str] | None, typer.Option("--metadata", help="Your own notes about the bucket.", metavar="KEY=VALUE")
]

# What cannot be changed later.
StorageOption = Annotated[
    str | None, typer.Option("--storage", help="Keep values in files or in memory.", metavar="file|f|memory|m")
]
KeyTtlOption = Annotated[
    bool | None, typer.Option("--key-ttl/--no-key-ttl", help="Let keys have a TTL of their own, as by default.")
]
MirrorOption = Annotated[str | None, typer.Option("--mirror", help="Be a read-only copy of this bucket.")]
MirrorDomainOption = Annotated[
    str | None, typer.Option("--mirror-domain", help="The domain that the mirrored bucket is in.")
]
SourceOption = Annotated[list[str] | None, typer.Option("--source", help="Copy these buckets into this one.")]

_TIMES = ("ttl_s", "limit_marker_ttl_s")


def bucket_fields(
    *,
    history: int | None = None,
    ttl: int | None = None,
    max_value_size: int | None = None,
    max_bucket_size: int | None = None,
    description: str | None = None,
    replicas: int | None = None,
    compress: bool | None = None,
    marker_ttl: int | None = None,
    direct: bool | None = None,
    republish_source: str | None = None,
    republish_destination: str | None = None,
    republish_headers: bool | None = None,
    cluster: str | None = None,
    tags: list[str] | None = None,
    metadata: list[str] | None = None,
    storage: str | None = None,
    key_ttl: bool | None = None,
    mirror: str | None = None,
    mirror_domain: str | None = None,
    source: list[str] | None = None,
) -> dict[str, Any]:
    """Return the fields that options set, by their dotted names. Raises `BadParameter`."""
    return given(
        {
            "history": history,
            "ttl_s": ttl,
            "max_value_bytes": max_value_size,
            "max_bytes": max_bucket_size,
            "description": description,
            "replicas": replicas,
            "compression": compress,
            "limit_marker_ttl_s": marker_ttl,
            "allow_direct": direct,
            "republish.source": republish_source,
            "republish.destination": republish_destination,
            "republish.headers_only": republish_headers,
            "placement.cluster": cluster,
            "placement.tags": split_texts(tags),
            "metadata": parse_pairs("--metadata", metadata),
            "storage": parse_choice("--storage", storage, STORAGES),
            "key_ttl": key_ttl,
            "mirror": mirror,
            "mirror_domain": mirror_domain,
            "sources": split_texts(source),
        }
    )


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
        elif name == "metadata":
            # As with streams: a note that is not named stays.
            fields[name] = {**config.metadata, **value}
        elif name != "mirror_domain":
            fields[name] = value
    if republish:
        before = msgspec.structs.asdict(config.republish) if config.republish else {"destination": ""}
        fields["republish"] = Republish(**(before | republish))
    if placement:
        fields["placement"] = placement
    return msgspec.structs.replace(config, **fields)
