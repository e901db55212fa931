"""`jetlake stream add`, `edit` and `copy`: what makes and changes streams."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jetlake.cli.choose import StreamArgument, choose_stream
from jetlake.cli.configuration import ConfigOption, edited, read_config, write_config
from jetlake.cli.difference import is_wanted
from jetlake.cli.output import ForceOption, JsonOption, ask, print_facts, print_json, print_note
from jetlake.cli.run import refusals, run
from jetlake.cli.stream_options import (
    DEFAULTS,
    USUAL,
    AckOption,
    AllowBatchOption,
    AllowCounterOption,
    AllowDirectOption,
    AllowFastOption,
    AllowMirrorDirectOption,
    AllowMsgTtlOption,
    AllowRollupOption,
    AllowSchedulesOption,
    ClusterOption,
    CompressionOption,
    DenyDeleteOption,
    DenyPurgeOption,
    DescriptionOption,
    DiscardOption,
    DiscardPerSubjectOption,
    DupeWindowOption,
    ExternalDeliverOption,
    ExternalOption,
    FirstSequenceOption,
    LimitConsumerInactiveOption,
    LimitConsumerMaxPendingOption,
    MaxAgeOption,
    MaxBytesOption,
    MaxConsumersOption,
    MaxMsgSizeOption,
    MaxMsgsOption,
    MaxMsgsPerSubjectOption,
    MetadataOption,
    MirrorOption,
    NoMirrorOption,
    NoRepublishOption,
    NoTransformOption,
    PersistModeOption,
    ReplicasOption,
    RepublishDestinationOption,
    RepublishHeadersOption,
    RepublishSourceOption,
    RetentionOption,
    SourceOption,
    StorageOption,
    SubjectDelMarkersTtlOption,
    SubjectsOption,
    TagOption,
    TransformDestinationOption,
    TransformSourceOption,
    stream_fields,
    with_fields,
)
from jetlake.client.api import token
from jetlake.client.schemas import STREAM_CONFIGURATION, require_valid
from jetlake.errors import ClientError
from jetlake.presentation.stream_facts import config_facts, state_facts

if TYPE_CHECKING:
    from jetlake.client.api import Api

NAME_ADVICE = "Give a stream name: `jetlake stream add ORDERS --subjects 'orders.>'`."


def add(
    name: StreamArgument = "",
    config: ConfigOption = None,
    defaults: Annotated[bool, typer.Option("--defaults", help="Ask nothing.")] = False,
    validate: Annotated[bool, typer.Option("--validate", help="Only check the configuration.")] = False,
    output: Annotated[Path | None, typer.Option(help="Write the configuration here instead.", metavar="FILE")] = None,
    as_json: JsonOption = False,
    *,
    subjects: SubjectsOption = None,
    description: DescriptionOption = None,
    storage: StorageOption = None,
    retention: RetentionOption = None,
    discard: DiscardOption = None,
    discard_per_subject: DiscardPerSubjectOption = None,
    max_msgs: MaxMsgsOption = None,
    max_msgs_per_subject: MaxMsgsPerSubjectOption = None,
    max_bytes: MaxBytesOption = None,
    max_age: MaxAgeOption = None,
    max_msg_size: MaxMsgSizeOption = None,
    max_consumers: MaxConsumersOption = None,
    dupe_window: DupeWindowOption = None,
    replicas: ReplicasOption = None,
    compression: CompressionOption = None,
    ack: AckOption = None,
    first_sequence: FirstSequenceOption = None,
    allow_direct: AllowDirectOption = None,
    allow_mirror_direct: AllowMirrorDirectOption = None,
    allow_rollup: AllowRollupOption = None,
    allow_batch: AllowBatchOption = None,
    allow_fast: AllowFastOption = None,
    allow_counter: AllowCounterOption = None,
    allow_msg_ttl: AllowMsgTtlOption = None,
    allow_schedules: AllowSchedulesOption = None,
    subject_del_markers_ttl: SubjectDelMarkersTtlOption = None,
    deny_delete: DenyDeleteOption = None,
    deny_purge: DenyPurgeOption = None,
    mirror: MirrorOption = None,
    external: ExternalOption = None,
    external_deliver: ExternalDeliverOption = None,
    source: SourceOption = None,
    transform_source: TransformSourceOption = None,
    transform_destination: TransformDestinationOption = None,
    republish_source: RepublishSourceOption = None,
    republish_destination: RepublishDestinationOption = None,
    republish_headers: RepublishHeadersOption = None,
    limit_consumer_inactive: LimitConsumerInactiveOption = None,
    limit_consumer_max_pending: LimitConsumerMaxPendingOption = None,
    persist_mode: PersistModeOption = None,
    cluster: ClusterOption = None,
    tag: TagOption = None,
    metadata: MetadataOption = None,
) -> None:
    """Create a stream.

    On a terminal, a name and subjects that are missing are asked for. `jetlake stream add ORDERS --subjects 'orders.>'`
    asks nothing.
    """
    fields = stream_fields(
        subjects=subjects,
        description=description,
        storage=storage,
        retention=retention,
        discard=discard,
        discard_per_subject=discard_per_subject,
        max_msgs=max_msgs,
        max_msgs_per_subject=max_msgs_per_subject,
        max_bytes=max_bytes,
        max_age=max_age,
        max_msg_size=max_msg_size,
        max_consumers=max_consumers,
        dupe_window=dupe_window,
        replicas=replicas,
        compression=compression,
        ack=ack,
        first_sequence=first_sequence,
        allow_direct=allow_direct,
        allow_mirror_direct=allow_mirror_direct,
        allow_rollup=allow_rollup,
        allow_batch=allow_batch,
        allow_fast=allow_fast,
        allow_counter=allow_counter,
        allow_msg_ttl=allow_msg_ttl,
        allow_schedules=allow_schedules,
        subject_del_markers_ttl=subject_del_markers_ttl,
        deny_delete=deny_delete,
        deny_purge=deny_purge,
        mirror=mirror,
        external=external,
        external_deliver=external_deliver,
        source=source,
        transform_source=transform_source,
        transform_destination=transform_destination,
        republish_source=republish_source,
        republish_destination=republish_destination,
        republish_headers=republish_headers,
        limit_consumer_inactive=limit_consumer_inactive,
        limit_consumer_max_pending=limit_consumer_max_pending,
        persist_mode=persist_mode,
        cluster=cluster,
        tag=tag,
        metadata=metadata,
    )
    with refusals():
        wanted = with_fields(DEFAULTS if config is None else USUAL | read_config(config), fields)
        if name:
            wanted["name"] = name
        _complete(wanted, may_ask=not defaults and config is None)
        if validate or output is not None:
            require_valid(wanted, STREAM_CONFIGURATION)
    if output is not None:
        with refusals():
            write_config(output, wanted)
        print_note(f"Configuration written to {output}")
        return
    if validate:
        print_note("The configuration is valid")
        return
    made = run(lambda api: api.request(f"STREAM.CREATE.{token(wanted['name'])}", wanted))
    _show_made(made, f"Created stream {wanted['name']}", as_json=as_json)


def edit(
    name: StreamArgument = "",
    config: ConfigOption = None,
    interactive: Annotated[bool, typer.Option("--interactive", "-i", help="Edit it in your EDITOR.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would change.")] = False,
    force: ForceOption = False,
    as_json: JsonOption = False,
    *,
    subjects: SubjectsOption = None,
    description: DescriptionOption = None,
    storage: StorageOption = None,
    retention: RetentionOption = None,
    discard: DiscardOption = None,
    discard_per_subject: DiscardPerSubjectOption = None,
    max_msgs: MaxMsgsOption = None,
    max_msgs_per_subject: MaxMsgsPerSubjectOption = None,
    max_bytes: MaxBytesOption = None,
    max_age: MaxAgeOption = None,
    max_msg_size: MaxMsgSizeOption = None,
    max_consumers: MaxConsumersOption = None,
    dupe_window: DupeWindowOption = None,
    replicas: ReplicasOption = None,
    compression: CompressionOption = None,
    ack: AckOption = None,
    allow_direct: AllowDirectOption = None,
    allow_mirror_direct: AllowMirrorDirectOption = None,
    allow_rollup: AllowRollupOption = None,
    allow_batch: AllowBatchOption = None,
    allow_fast: AllowFastOption = None,
    allow_counter: AllowCounterOption = None,
    allow_msg_ttl: AllowMsgTtlOption = None,
    allow_schedules: AllowSchedulesOption = None,
    subject_del_markers_ttl: SubjectDelMarkersTtlOption = None,
    deny_delete: DenyDeleteOption = None,
    deny_purge: DenyPurgeOption = None,
    mirror: MirrorOption = None,
    external: ExternalOption = None,
    external_deliver: ExternalDeliverOption = None,
    source: SourceOption = None,
    transform_source: TransformSourceOption = None,
    transform_destination: TransformDestinationOption = None,
    republish_source: RepublishSourceOption = None,
    republish_destination: RepublishDestinationOption = None,
    republish_headers: RepublishHeadersOption = None,
    limit_consumer_inactive: LimitConsumerInactiveOption = None,
    limit_consumer_max_pending: LimitConsumerMaxPendingOption = None,
    persist_mode: PersistModeOption = None,
    cluster: ClusterOption = None,
    tag: TagOption = None,
    metadata: MetadataOption = None,
    no_mirror: NoMirrorOption = False,
    no_transform: NoTransformOption = False,
    no_republish: NoRepublishOption = False,
) -> None:
    """Change a stream: shows the difference, and asks."""
    fields = stream_fields(
        subjects=subjects,
        description=description,
        storage=storage,
        retention=retention,
        discard=discard,
        discard_per_subject=discard_per_subject,
        max_msgs=max_msgs,
        max_msgs_per_subject=max_msgs_per_subject,
        max_bytes=max_bytes,
        max_age=max_age,
        max_msg_size=max_msg_size,
        max_consumers=max_consumers,
        dupe_window=dupe_window,
        replicas=replicas,
        compression=compression,
        ack=ack,
        allow_direct=allow_direct,
        allow_mirror_direct=allow_mirror_direct,
        allow_rollup=allow_rollup,
        allow_batch=allow_batch,
        allow_fast=allow_fast,
        allow_counter=allow_counter,
        allow_msg_ttl=allow_msg_ttl,
        allow_schedules=allow_schedules,
        subject_del_markers_ttl=subject_del_markers_ttl,
        deny_delete=deny_delete,
        deny_purge=deny_purge,
        mirror=mirror,
        external=external,
        external_deliver=external_deliver,
        source=source,
        transform_source=transform_source,
        transform_destination=transform_destination,
        republish_source=republish_source,
        republish_destination=republish_destination,
        republish_headers=republish_headers,
        limit_consumer_inactive=limit_consumer_inactive,
        limit_consumer_max_pending=limit_consumer_max_pending,
        persist_mode=persist_mode,
        cluster=cluster,
        tag=tag,
        metadata=metadata,
    )
    removals = {"mirror": no_mirror, "subject_transform": no_transform, "republish": no_republish}
    fields |= {field: None for field, is_removed in removals.items() if is_removed}
    with refusals():
        replacement = None if config is None else read_config(config)

    async def work(api: "Api") -> dict[str, Any] | None:
        chosen = await choose_stream(api, name, force=force)
        before = (await api.request(f"STREAM.INFO.{token(chosen)}"))["config"]
        after = with_fields(replacement if replacement is not None else before, fields)
        if interactive:
            after = edited(after)
        after["name"] = chosen
        if not is_wanted(f"Stream {chosen}", before, after, dry_run=dry_run, force=force, as_json=as_json):
            return None
        return await api.request(f"STREAM.UPDATE.{chosen}", after)

    made = run(work)
    if made is not None and as_json:
        print_json(made)
    elif made is not None:
        print_note(f"Changed stream {made['config']['name']}", style="green")


def copy(
    origin: Annotated[str, typer.Argument(help="The stream whose configuration is copied.", metavar="STREAM")],
    destination: Annotated[str, typer.Argument(help="Name of the new stream.")],
    as_json: JsonOption = False,
    *,
    subjects: SubjectsOption = None,
    description: DescriptionOption = None,
    storage: StorageOption = None,
    retention: RetentionOption = None,
    discard: DiscardOption = None,
    discard_per_subject: DiscardPerSubjectOption = None,
    max_msgs: MaxMsgsOption = None,
    max_msgs_per_subject: MaxMsgsPerSubjectOption = None,
    max_bytes: MaxBytesOption = None,
    max_age: MaxAgeOption = None,
    max_msg_size: MaxMsgSizeOption = None,
    max_consumers: MaxConsumersOption = None,
    dupe_window: DupeWindowOption = None,
    replicas: ReplicasOption = None,
    compression: CompressionOption = None,
    ack: AckOption = None,
    first_sequence: FirstSequenceOption = None,
    allow_direct: AllowDirectOption = None,
    allow_mirror_direct: AllowMirrorDirectOption = None,
    allow_rollup: AllowRollupOption = None,
    allow_batch: AllowBatchOption = None,
    allow_fast: AllowFastOption = None,
    allow_counter: AllowCounterOption = None,
    allow_msg_ttl: AllowMsgTtlOption = None,
    allow_schedules: AllowSchedulesOption = None,
    subject_del_markers_ttl: SubjectDelMarkersTtlOption = None,
    deny_delete: DenyDeleteOption = None,
    deny_purge: DenyPurgeOption = None,
    mirror: MirrorOption = None,
    external: ExternalOption = None,
    external_deliver: ExternalDeliverOption = None,
    source: SourceOption = None,
    transform_source: TransformSourceOption = None,
    transform_destination: TransformDestinationOption = None,
    republish_source: RepublishSourceOption = None,
    republish_destination: RepublishDestinationOption = None,
    republish_headers: RepublishHeadersOption = None,
    limit_consumer_inactive: LimitConsumerInactiveOption = None,
    limit_consumer_max_pending: LimitConsumerMaxPendingOption = None,
    persist_mode: PersistModeOption = None,
    cluster: ClusterOption = None,
    tag: TagOption = None,
    metadata: MetadataOption = None,
) -> None:
    """Create a stream with the configuration of another, without its messages; `fork` includes them.

    Subjects belong to one stream, so the new one needs others: --subjects.
    """
    fields = stream_fields(
        subjects=subjects,
        description=description,
        storage=storage,
        retention=retention,
        discard=discard,
        discard_per_subject=discard_per_subject,
        max_msgs=max_msgs,
        max_msgs_per_subject=max_msgs_per_subject,
        max_bytes=max_bytes,
        max_age=max_age,
        max_msg_size=max_msg_size,
        max_consumers=max_consumers,
        dupe_window=dupe_window,
        replicas=replicas,
        compression=compression,
        ack=ack,
        first_sequence=first_sequence,
        allow_direct=allow_direct,
        allow_mirror_direct=allow_mirror_direct,
        allow_rollup=allow_rollup,
        allow_batch=allow_batch,
        allow_fast=allow_fast,
        allow_counter=allow_counter,
        allow_msg_ttl=allow_msg_ttl,
        allow_schedules=allow_schedules,
        subject_del_markers_ttl=subject_del_markers_ttl,
        deny_delete=deny_delete,
        deny_purge=deny_purge,
        mirror=mirror,
        external=external,
        external_deliver=external_deliver,
        source=source,
        transform_source=transform_source,
        transform_destination=transform_destination,
        republish_source=republish_source,
        republish_destination=republish_destination,
        republish_headers=republish_headers,
        limit_consumer_inactive=limit_consumer_inactive,
        limit_consumer_max_pending=limit_consumer_max_pending,
        persist_mode=persist_mode,
        cluster=cluster,
        tag=tag,
        metadata=metadata,
    )

    async def work(api: "Api") -> dict[str, Any]:
        given = (await api.request(f"STREAM.INFO.{token(origin)}"))["config"]
        kept = {key: value for key, value in given.items() if key not in ("metadata", "sealed")}
        own = {key: value for key, value in (given.get("metadata") or {}).items() if not key.startswith("_nats.")}
        wanted = with_fields(kept | ({"metadata": own} if own else {}), fields) | {"name": destination}
        return await api.request(f"STREAM.CREATE.{token(wanted['name'])}", wanted)

    made = run(work)
    _show_made(made, f"Created stream {destination} with the configuration of {origin}", as_json=as_json)


def _complete(wanted: dict[str, Any], *, may_ask: bool) -> None:
    """Ask for what a stream cannot be without."""
    if not wanted.get("name"):
        if not may_ask:
            raise ClientError(NAME_ADVICE)
        wanted["name"] = ask("Name of the stream", flag="NAME", advice=NAME_ADVICE)
    if not any(wanted.get(key) for key in ("subjects", "mirror", "sources")) and may_ask:
        # A stream without subjects listens on the subject with its own name.
        if not sys.stdin.isatty():
            text = f"No --subjects: stream {wanted['name']} listens on subject {wanted['name']!r}."
            typer.echo(text, err=True)
        answer = ask("Subjects it takes, with commas between them", flag="--subjects", default=wanted["name"])
        wanted["subjects"] = [part.strip() for part in answer.split(",") if part.strip()]


def _show_made(made: dict[str, Any], title: str, *, as_json: bool) -> None:
    if as_json:
        print_json(made)
        return
    print_note(title, style="green")
    print_facts("", config_facts(made["config"]) | state_facts(made))
