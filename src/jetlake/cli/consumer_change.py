"""`jetlake consumer add`, `edit` and `copy`: what makes and changes consumers."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jetlake.cli.choose import ConsumerArgument, NamedStream, StreamArgument, choose_consumer, choose_stream
from jetlake.cli.configuration import ConfigOption, edited, merged, read_config, write_config
from jetlake.cli.consumer_options import (
    AckOption,
    BackoffMaxOption,
    BackoffMinOption,
    BackoffOption,
    BackoffStepsOption,
    BpsOption,
    DeliverGroupOption,
    DeliverOption,
    DescriptionOption,
    EphemeralOption,
    FilterOption,
    FlowControlOption,
    HeadersOnlyOption,
    HeartbeatOption,
    InactiveThresholdOption,
    MaxDeliverOption,
    MaxPendingOption,
    MaxPullBatchOption,
    MaxPullBytesOption,
    MaxPullExpireOption,
    MaxWaitingOption,
    MemoryOption,
    MetadataOption,
    OverflowGroupsOption,
    PauseOption,
    PinnedGroupsOption,
    PinnedTtlOption,
    PrioritizedGroupsOption,
    PullOption,
    ReplayOption,
    ReplicasOption,
    SampleOption,
    TargetOption,
    WaitOption,
    consumer_fields,
)
from jetlake.cli.difference import is_wanted
from jetlake.cli.output import ForceOption, JsonOption, ask, print_facts, print_json, print_note
from jetlake.cli.run import refusals, run
from jetlake.client.api import token
from jetlake.client.schemas import CONSUMER_CONFIGURATION, require_valid
from jetlake.errors import ClientError
from jetlake.presentation.consumer_facts import consumer_facts

if TYPE_CHECKING:
    from jetlake.client.api import Api

DEFAULTS = {"deliver_policy": "all", "ack_policy": "explicit", "replay_policy": "instant"}
"""What `add` chooses unless a file or an option does."""


def add(
    stream: StreamArgument = "",
    name: ConsumerArgument = "",
    config: ConfigOption = None,
    defaults: Annotated[bool, typer.Option("--defaults", help="Ask nothing.")] = False,
    validate: Annotated[bool, typer.Option("--validate", help="Only check the configuration.")] = False,
    output: Annotated[Path | None, typer.Option(help="Write the configuration here instead.", metavar="FILE")] = None,
    as_json: JsonOption = False,
    *,
    filter_subjects: FilterOption = None,
    description: DescriptionOption = None,
    wait: WaitOption = None,
    max_deliver: MaxDeliverOption = None,
    max_pending: MaxPendingOption = None,
    backoff: BackoffOption = None,
    backoff_steps: BackoffStepsOption = None,
    backoff_min: BackoffMinOption = None,
    backoff_max: BackoffMaxOption = None,
    headers_only: HeadersOnlyOption = None,
    max_pull_batch: MaxPullBatchOption = None,
    max_pull_expire: MaxPullExpireOption = None,
    max_pull_bytes: MaxPullBytesOption = None,
    sample: SampleOption = None,
    target: TargetOption = None,
    inactive_threshold: InactiveThresholdOption = None,
    replicas: ReplicasOption = None,
    metadata: MetadataOption = None,
    ack: AckOption = None,
    deliver: DeliverOption = None,
    pull: PullOption = None,
    ephemeral: EphemeralOption = None,
    replay: ReplayOption = None,
    deliver_group: DeliverGroupOption = None,
    flow_control: FlowControlOption = None,
    heartbeat: HeartbeatOption = None,
    max_waiting: MaxWaitingOption = None,
    memory: MemoryOption = None,
    pause: PauseOption = None,
    pinned_groups: PinnedGroupsOption = None,
    pinned_ttl: PinnedTtlOption = None,
    overflow_groups: OverflowGroupsOption = None,
    prioritized_groups: PrioritizedGroupsOption = None,
    bps: BpsOption = None,
) -> None:
    """Create a consumer.

    It is a durable pull consumer that starts with the first message and expects each to be acknowledged, unless flags
    say otherwise.
    """
    fields = consumer_fields(
        filter_subjects=filter_subjects,
        description=description,
        wait=wait,
        max_deliver=max_deliver,
        max_pending=max_pending,
        backoff=backoff,
        backoff_steps=backoff_steps,
        backoff_min=backoff_min,
        backoff_max=backoff_max,
        headers_only=headers_only,
        max_pull_batch=max_pull_batch,
        max_pull_expire=max_pull_expire,
        max_pull_bytes=max_pull_bytes,
        sample=sample,
        target=target,
        inactive_threshold=inactive_threshold,
        replicas=replicas,
        metadata=metadata,
        ack=ack,
        deliver=deliver,
        replay=replay,
        deliver_group=deliver_group,
        flow_control=flow_control,
        heartbeat=heartbeat,
        max_waiting=max_waiting,
        memory=memory,
        pause=pause,
        pinned_groups=pinned_groups,
        pinned_ttl=pinned_ttl,
        overflow_groups=overflow_groups,
        prioritized_groups=prioritized_groups,
        bps=bps,
    )
    with refusals():
        given = read_config(config) if config is not None else {}
        if pull and target:
            raise ClientError("--pull and --target exclude each other: a consumer is asked, or sends by itself")
        wanted = merged(DEFAULTS | given, fields)
        _complete(wanted, name, may_ask=not defaults, is_ephemeral=bool(ephemeral))
        if validate or output is not None:
            require_valid(wanted, CONSUMER_CONFIGURATION)
        if output is not None:
            write_config(output, wanted)
            print_note(f"Configuration written to {output}")
            return
    if validate:
        print_note("The configuration is valid")
        return

    async def work(api: "Api") -> dict[str, Any]:
        chosen = await choose_stream(api, stream)
        return await _create(api, chosen, wanted, "create")

    made = run(work)
    show_consumer(made, f"Created consumer {made['name']} of stream {made['stream_name']}", as_json=as_json)


def edit(
    stream: StreamArgument = "",
    name: ConsumerArgument = "",
    config: ConfigOption = None,
    interactive: Annotated[bool, typer.Option("--interactive", "-i", help="Edit it in your EDITOR.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would change.")] = False,
    force: ForceOption = False,
    as_json: JsonOption = False,
    *,
    filter_subjects: FilterOption = None,
    description: DescriptionOption = None,
    wait: WaitOption = None,
    max_deliver: MaxDeliverOption = None,
    max_pending: MaxPendingOption = None,
    backoff: BackoffOption = None,
    backoff_steps: BackoffStepsOption = None,
    backoff_min: BackoffMinOption = None,
    backoff_max: BackoffMaxOption = None,
    headers_only: HeadersOnlyOption = None,
    max_pull_batch: MaxPullBatchOption = None,
    max_pull_expire: MaxPullExpireOption = None,
    max_pull_bytes: MaxPullBytesOption = None,
    sample: SampleOption = None,
    target: TargetOption = None,
    inactive_threshold: InactiveThresholdOption = None,
    replicas: ReplicasOption = None,
    metadata: MetadataOption = None,
) -> None:
    """Change a consumer; shows the difference and asks first."""
    fields = consumer_fields(
        filter_subjects=filter_subjects,
        description=description,
        wait=wait,
        max_deliver=max_deliver,
        max_pending=max_pending,
        backoff=backoff,
        backoff_steps=backoff_steps,
        backoff_min=backoff_min,
        backoff_max=backoff_max,
        headers_only=headers_only,
        max_pull_batch=max_pull_batch,
        max_pull_expire=max_pull_expire,
        max_pull_bytes=max_pull_bytes,
        sample=sample,
        target=target,
        inactive_threshold=inactive_threshold,
        replicas=replicas,
        metadata=metadata,
    )
    with refusals():
        replacement = None if config is None else read_config(config)

    async def work(api: "Api") -> dict[str, Any] | None:
        found = await find_consumer(api, stream, name, force=force)
        before = found["config"]
        after = merged(before if replacement is None else replacement, fields)
        if interactive:
            after = edited(after)
        after |= {key: before[key] for key in ("name", "durable_name") if key in before}
        what = f"Consumer {found['name']}"
        if not is_wanted(what, before, after, dry_run=dry_run, force=force, as_json=as_json):
            return None
        return await _create(api, found["stream_name"], after, "update")

    made = run(work)
    if made is not None and as_json:
        print_json(made)
    elif made is not None:
        print_note(f"Consumer {made['name']} was changed", style="green")


def copy(
    stream: NamedStream,
    origin: Annotated[str, typer.Argument(help="The consumer whose configuration is copied.", metavar="CONSUMER")],
    destination: Annotated[str, typer.Argument(help="Name of the new consumer.")],
    as_json: JsonOption = False,
    *,
    filter_subjects: FilterOption = None,
    description: DescriptionOption = None,
    wait: WaitOption = None,
    max_deliver: MaxDeliverOption = None,
    max_pending: MaxPendingOption = None,
    backoff: BackoffOption = None,
    backoff_steps: BackoffStepsOption = None,
    backoff_min: BackoffMinOption = None,
    backoff_max: BackoffMaxOption = None,
    headers_only: HeadersOnlyOption = None,
    max_pull_batch: MaxPullBatchOption = None,
    max_pull_expire: MaxPullExpireOption = None,
    max_pull_bytes: MaxPullBytesOption = None,
    sample: SampleOption = None,
    target: TargetOption = None,
    inactive_threshold: InactiveThresholdOption = None,
    replicas: ReplicasOption = None,
    metadata: MetadataOption = None,
    ack: AckOption = None,
    deliver: DeliverOption = None,
    pull: PullOption = None,  # noqa: ARG001 - a line of `add` works here too
    ephemeral: EphemeralOption = None,
    replay: ReplayOption = None,
    deliver_group: DeliverGroupOption = None,
    flow_control: FlowControlOption = None,
    heartbeat: HeartbeatOption = None,
    max_waiting: MaxWaitingOption = None,
    memory: MemoryOption = None,
    pause: PauseOption = None,
    pinned_groups: PinnedGroupsOption = None,
    pinned_ttl: PinnedTtlOption = None,
    overflow_groups: OverflowGroupsOption = None,
    prioritized_groups: PrioritizedGroupsOption = None,
    bps: BpsOption = None,
) -> None:
    """Create a consumer with the configuration of another; it starts where that one started."""
    fields = consumer_fields(
        filter_subjects=filter_subjects,
        description=description,
        wait=wait,
        max_deliver=max_deliver,
        max_pending=max_pending,
        backoff=backoff,
        backoff_steps=backoff_steps,
        backoff_min=backoff_min,
        backoff_max=backoff_max,
        headers_only=headers_only,
        max_pull_batch=max_pull_batch,
        max_pull_expire=max_pull_expire,
        max_pull_bytes=max_pull_bytes,
        sample=sample,
        target=target,
        inactive_threshold=inactive_threshold,
        replicas=replicas,
        metadata=metadata,
        ack=ack,
        deliver=deliver,
        replay=replay,
        deliver_group=deliver_group,
        flow_control=flow_control,
        heartbeat=heartbeat,
        max_waiting=max_waiting,
        memory=memory,
        pause=pause,
        pinned_groups=pinned_groups,
        pinned_ttl=pinned_ttl,
        overflow_groups=overflow_groups,
        prioritized_groups=prioritized_groups,
        bps=bps,
    )

    async def work(api: "Api") -> dict[str, Any]:
        given = (await find_consumer(api, stream, origin))["config"]
        kept = {key: value for key, value in given.items() if key not in ("durable_name", "metadata", "pause_until")}
        own = {key: value for key, value in (given.get("metadata") or {}).items() if not key.startswith("_nats.")}
        wanted = merged(kept | ({"metadata": own} if own else {}), fields) | {"name": destination}
        if not ephemeral:
            wanted["durable_name"] = destination
        return await _create(api, stream, wanted, "create")

    made = run(work)
    show_consumer(made, f"Created consumer {destination} with the configuration of {origin}", as_json=as_json)


def _complete(wanted: dict[str, Any], name: str, *, may_ask: bool, is_ephemeral: bool) -> None:
    """Name the consumer, and ask for the name if it needs one."""
    name = name or str(wanted.get("name") or wanted.get("durable_name") or "")
    if not name and not is_ephemeral:
        name = ask("Name of the consumer", flag="CONSUMER") if may_ask else ""
        if not name:
            raise ClientError("the consumer has no name: give one, or --ephemeral")
    if name:
        wanted["name"] = name
    if name and not is_ephemeral:
        wanted["durable_name"] = name


async def find_consumer(api: "Api", stream: str, name: str, *, force: bool = False) -> dict[str, Any]:
    """Return the description of the consumer that is meant; with `force` nobody is asked which one it is."""
    chosen = await choose_stream(api, stream, force=force)
    consumer = await choose_consumer(api, chosen, name, force=force)
    return await api.request(f"CONSUMER.INFO.{token(chosen)}.{token(consumer)}")


async def _create(api: "Api", stream: str, config: dict[str, Any], action: str) -> dict[str, Any]:
    """Make or change a consumer."""
    body = {"stream_name": stream, "config": config, "action": action}
    if not config.get("name"):
        # Without a name in the subject the server gives one.
        return await api.request(f"CONSUMER.CREATE.{token(stream)}", body)
    return await api.request(f"CONSUMER.CREATE.{token(stream)}.{token(str(config['name']))}", body)


def show_consumer(info: dict[str, Any], title: str, *, as_json: bool) -> None:
    """Print the configuration and the state of a consumer."""
    if as_json:
        print_json(info)
        return
    if title:
        print_note(title, style="green")
        print_facts("", consumer_facts(info))
    else:
        created = f"created {info.get('created', '')}"
        print_facts(f"Consumer {info['name']} of {info['stream_name']}, {created}", consumer_facts(info))
