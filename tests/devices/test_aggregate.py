"""What commands become: links, metadata and resources, without a server."""

import pytest

from jetlake.devices import content
from jetlake.devices.aggregate.links import LINKS_MAX, LinksAggregate
from jetlake.devices.aggregate.metadata import MetadataAggregate
from jetlake.devices.aggregate.model import PENDING_COMMANDS_MAX, Caller
from jetlake.devices.aggregate.resource import CommandKind, ResourceAggregate
from jetlake.devices.protos import api_pb2
from jetlake.devices.protos import events_2025_pb2 as events
from jetlake.devices.subjects import AggregateKey, Family
from jetlake.errors import DeviceError
from tests.devices import commands as c
from tests.devices.samples import D1

NOW_NS = 1_700_000_000_000_000_000
CALLER = Caller(user_id="ada", owner="acme", peer="127.0.0.1:5", now_ns=NOW_NS)
Twin = events.TwinSynchronization


class Subject:
    """One aggregate, whose decisions are stored at once."""

    def __init__(self, aggregate):
        self.aggregate = aggregate
        self.stored = []

    def run(self, method, command, *, kind=None, caller=CALLER):
        arguments = (command, caller) if kind is None else (kind, command, caller)
        decided = self.aggregate.stamped(getattr(self.aggregate, method)(*arguments), command, caller)
        for message in decided:
            self.aggregate.apply(message)
        self.stored += decided
        return decided


@pytest.fixture
def light():
    return Subject(ResourceAggregate(AggregateKey.of_href(D1, c.HREF), c.HREF))


@pytest.fixture
def links():
    return Subject(LinksAggregate(AggregateKey(D1, Family.LINKS)))


@pytest.fixture
def device():
    return Subject(MetadataAggregate(AggregateKey(D1, Family.METADATA)))


def refused(status):
    return pytest.raises(DeviceError, check=lambda error: error.status == status)


# Resources.


def test_versions_start_at_zero_and_times_grow(light):
    for value in range(3):
        light.run("notify", c.notify(value))

    assert [message.event_metadata.version for message in light.stored] == [0, 1, 2]
    assert [message.event_metadata.timestamp for message in light.stored] == [NOW_NS, NOW_NS + 1, NOW_NS + 2]
    assert light.stored[0].audit_context == events.AuditContext(user_id="ada", owner="acme")
    assert light.stored[0].event_metadata.connection_id == "c1"


def test_time_never_goes_back(light):
    light.run("notify", c.notify(1))
    (later,) = light.run("notify", c.notify(2), caller=CALLER._replace(now_ns=NOW_NS - 10**9))

    assert later.event_metadata.timestamp == NOW_NS + 1


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        (c.notify(1, 5), 0),  # The same once more.
        (c.notify(2, 5), 0),  # The same sequence of the same connection.
        (c.notify(2, 4), 0),
        (c.notify(2, 6), 1),
        (c.notify(2, 1, connection="c2"), 1),
        (c.notify(1, 9, connection="c2"), 0),  # Equal content.
        (c.notify(1, 6, etag=b"x"), 0),  # An etag alone is no change.
        (c.notify(1, 6, status=events.ERROR), 1),
        (c.notify(1, 6, resource_types=["x"]), 1),
        (c.notify(2, 0), 1),  # Without a sequence only the content counts.
    ],
)
def test_notification_that_says_nothing_new_becomes_no_event(light, second, expected):
    light.run("notify", c.notify(1, 5))

    assert len(light.run("notify", second)) == expected


def test_command_and_confirmation_follow_each_other(light):
    light.run("notify", c.notify({"power": 1}))

    (pending,) = light.run("command", c.command("k1", {"power": 7}, time_to_live=10**9), kind=CommandKind.UPDATE)
    assert list(light.aggregate.pendings) == ["k1"]
    (updated,) = light.run("confirm", c.confirm("k1"), kind=CommandKind.UPDATE)

    assert (pending.event_metadata.version, updated.event_metadata.version) == (1, 2)
    assert pending.audit_context.correlation_id == updated.audit_context.correlation_id == "k1"
    assert pending.valid_until == NOW_NS + 10**9
    # The content comes as JSON and goes on in the form the resource uses.
    assert pending.content.content_type == content.OCF_CBOR
    assert content.value_of(pending.content) == {"power": 7}
    assert light.aggregate.pendings == {}


@pytest.mark.parametrize("kind", list(CommandKind))
def test_every_kind_of_command_has_its_events(light, kind):
    light.run("notify", c.notify(1, resource_types=["x.light"]))

    (pending,) = light.run("command", c.command("k1", 2), kind=kind)
    (confirmed,) = light.run("confirm", c.confirm("k1", value=2), kind=kind)

    assert (type(pending), type(confirmed)) == (kind.pending, kind.confirmed)
    assert pending.resource_types == confirmed.resource_types == ["x.light"]
    assert confirmed.status == events.OK


@pytest.mark.parametrize("kind", list(CommandKind))
def test_command_to_an_unknown_resource_is_not_found(light, kind):
    with refused("NOT_FOUND"):
        light.run("command", c.command("k1", 2), kind=kind)

    assert light.stored == []


def test_command_to_a_removed_resource_is_not_found(light):
    light.run("notify", c.notify(1))
    light.aggregate.apply(*light.aggregate.stamped(light.aggregate.removed(CALLER), c.unpublish_links(), CALLER))

    assert light.aggregate.latest.status == events.NOT_FOUND
    assert light.aggregate.latest.content.coap_content_format == -1
    assert light.aggregate.removed(CALLER) == []
    with refused("NOT_FOUND"):
        light.run("command", c.command("k1", 2), kind=CommandKind.UPDATE)


@pytest.mark.parametrize(
    ("wrong", "kind"),
    [
        (c.command("", 2), CommandKind.UPDATE),
        (c.command("k1"), CommandKind.UPDATE),
        (c.command("k1"), CommandKind.CREATE),
        (c.command("k1", 2, time_to_live=99_999_999), CommandKind.UPDATE),
        (c.command("k1", 2, time_to_live=-1), CommandKind.UPDATE),
        (api_pb2.ResourceCommandRequest(resource_id=c.resource(), correlation_id="k1"), CommandKind.RETRIEVE),
    ],
)
def test_wrong_command_is_refused(light, wrong, kind):
    light.run("notify", c.notify(1))

    with refused("INVALID_ARGUMENT"):
        light.run("command", wrong, kind=kind)


def test_live_correlation_id_is_refused_for_every_kind(light):
    light.run("notify", c.notify(1))
    light.run("command", c.command("k1", 2, time_to_live=10**9), kind=CommandKind.UPDATE)

    with refused("INVALID_ARGUMENT"):
        light.run("command", c.command("k1"), kind=CommandKind.RETRIEVE)
    # Its time is over, so the id is free again.
    light.run("command", c.command("k1"), kind=CommandKind.RETRIEVE, caller=CALLER._replace(now_ns=NOW_NS + 2 * 10**9))

    assert isinstance(light.aggregate.pendings["k1"], events.ResourceRetrievePending)


def test_confirmation_of_nothing_is_refused(light):
    light.run("notify", c.notify(1))
    light.run("command", c.command("k1", 2), kind=CommandKind.UPDATE)

    for wrong, kind in ((c.confirm("k2"), CommandKind.UPDATE), (c.confirm("k1"), CommandKind.DELETE)):
        with refused("INVALID_ARGUMENT"):
            light.run("confirm", wrong, kind=kind)


def test_confirmation_after_the_time_is_accepted(light):
    light.run("notify", c.notify(1))
    light.run("command", c.command("k1", 2, time_to_live=10**8), kind=CommandKind.UPDATE)

    assert light.run("confirm", c.confirm("k1"), kind=CommandKind.UPDATE, caller=CALLER._replace(now_ns=NOW_NS + 10**9))


def test_confirmed_deletion_ends_all_pending_commands(light):
    light.run("notify", c.notify(1))
    light.run("command", c.command("k1", 2), kind=CommandKind.UPDATE)
    light.run("command", c.command("k2"), kind=CommandKind.DELETE)
    light.run("command", c.command("k3"), kind=CommandKind.DELETE)

    light.run("confirm", c.confirm("k2", events.ERROR), kind=CommandKind.DELETE)
    assert list(light.aggregate.pendings) == ["k1", "k3"]
    light.run("confirm", c.confirm("k3"), kind=CommandKind.DELETE)

    assert light.aggregate.pendings == {}


def test_cancelled_commands_become_confirmations_with_their_status(light):
    light.run("notify", c.notify(1))
    light.run("command", c.command("k1", 2), kind=CommandKind.UPDATE)
    light.run("command", c.command("k2"), kind=CommandKind.RETRIEVE)
    light.run("command", c.command("k3"), kind=CommandKind.DELETE)
    request = api_pb2.CancelPendingCommandsRequest(command_metadata=c.metadata(), correlation_id_filter=["k2"])

    (one,) = light.run("cancel", request)
    rest = light.run("cancel", api_pb2.CancelPendingCommandsRequest(command_metadata=c.metadata()))

    assert isinstance(one, events.ResourceRetrieved)
    assert [message.status for message in (one, *rest)] == [events.CANCELED] * 3
    assert [type(message) for message in rest] == [events.ResourceUpdated, events.ResourceDeleted]
    with refused("NOT_FOUND"):
        light.run("cancel", request)


def test_pending_commands_have_a_limit(light):
    light.run("notify", c.notify(1))
    for number in range(PENDING_COMMANDS_MAX):
        light.run("command", c.command(f"k{number}"), kind=CommandKind.RETRIEVE)

    with refused("RESOURCE_EXHAUSTED"):
        light.run("command", c.command("one more"), kind=CommandKind.RETRIEVE)


def test_commands_whose_time_is_over_make_room(light):
    light.run("notify", c.notify(1))
    light.run("command", c.command("live"), kind=CommandKind.RETRIEVE)
    for number in range(PENDING_COMMANDS_MAX - 1):
        light.run("command", c.command(f"k{number}", time_to_live=10**8), kind=CommandKind.RETRIEVE)

    light.run("command", c.command("new"), kind=CommandKind.RETRIEVE, caller=CALLER._replace(now_ns=NOW_NS + 10**9))

    assert list(light.aggregate.pendings) == ["live", "new"]


def test_snapshot_carries_the_whole_state(light):
    light.run("notify", c.notify({"power": 3}, 4))
    for number, kind in enumerate(CommandKind):
        light.run("command", c.command(f"k{number}", 2), kind=kind)
    (snapshot,) = light.aggregate.stamped([light.aggregate.snapshot(CALLER)], None, CALLER)

    other = ResourceAggregate(light.aggregate.key)
    other.apply(snapshot)

    assert (other.version, other.href, other.latest) == (5, c.HREF, light.aggregate.latest)
    assert other.pendings == light.aggregate.pendings


def test_missing_event_is_noticed(light):
    light.run("notify", c.notify(1))
    (later,) = light.aggregate.stamped(light.aggregate.notify(c.notify(2), CALLER), c.notify(2), CALLER)
    later.event_metadata.version = 5

    with refused("DATA_LOSS"):
        light.aggregate.apply(later)


def test_notification_without_content_or_metadata_is_refused(light):
    for wrong in (
        api_pb2.NotifyResourceChangedRequest(resource_id=c.resource(), command_metadata=c.metadata()),
        api_pb2.NotifyResourceChangedRequest(resource_id=c.resource(), content=content.of_value(1)),
    ):
        with refused("INVALID_ARGUMENT"):
            light.run("notify", wrong)


# Links.


def test_only_new_and_changed_links_become_an_event(links):
    (first,) = links.run("publish", c.publish_links("/a", "/b"))
    again = links.run("publish", c.publish_links("/a", "/b"))
    endpoints = [events.EndpointInformation(endpoint="coap://1.2.3.4")]
    moved = links.run("publish", c.publish_links("/a", endpoint_informations=endpoints))
    (renamed,) = links.run("publish", c.publish_links("/a", "/b", title="lamp"))
    (third,) = links.run("publish", c.publish_links("/b", "/c", title="lamp"))

    assert [link.href for link in first.resources] == ["/a", "/b"]
    assert first.resources[0].device_id == D1
    assert (again, moved) == ([], [])
    assert [link.href for link in renamed.resources] == ["/a", "/b"]
    assert [link.href for link in third.resources] == ["/c"]


def test_unpublished_links_are_listed(links):
    links.run("publish", c.publish_links("/a", "/b", "/c"))

    (one,) = links.run("unpublish", c.unpublish_links("/b", "/unknown"))
    (rest,) = links.run("unpublish", c.unpublish_links())

    assert list(one.hrefs) == ["/b"]
    assert list(rest.hrefs) == ["/a", "/c"]
    assert links.run("unpublish", c.unpublish_links("/a")) == []


def test_unpublishing_of_an_unknown_device_is_not_found(links):
    with refused("NOT_FOUND"):
        links.run("unpublish", c.unpublish_links())


@pytest.mark.parametrize(
    "wrong",
    [
        c.publish_links(),
        c.publish_links("a"),
        c.publish_links("/"),
        api_pb2.PublishResourceLinksRequest(device_id=D1, resources=[events.Resource(href="/a")]),
        c.publish_links("/a", device_id="other"),
    ],
)
def test_wrong_links_are_refused(links, wrong):
    with refused("INVALID_ARGUMENT"):
        links.run("publish", wrong)


def test_links_have_a_limit(links):
    links.run("publish", c.publish_links(*(f"/{number}" for number in range(LINKS_MAX))))

    with refused("RESOURCE_EXHAUSTED"):
        links.run("publish", c.publish_links("/one/more"))


def test_snapshot_replaces_all_links(links):
    links.run("publish", c.publish_links("/a", "/b"))
    (snapshot,) = links.aggregate.stamped([links.aggregate.snapshot(CALLER)], None, CALLER)

    other = LinksAggregate(links.aggregate.key)
    other.apply(snapshot)

    assert sorted(other.links) == ["/a", "/b"]


# Metadata.


def test_device_comes_online_and_goes_offline(device):
    (first,) = device.run("update", c.online(protocol=events.Connection.COAPS_TCP))
    (last,) = device.run("update", c.offline())

    assert (first.connection.status, first.connection.connected_at) == (events.Connection.ONLINE, NOW_NS)
    assert first.twin_enabled
    assert first.twin_synchronization.state == Twin.OUT_OF_SYNC
    assert last.connection.status == events.Connection.OFFLINE
    assert last.connection.id == "c1"


def test_repeated_connection_becomes_no_event(device):
    device.run("update", c.online())

    assert device.run("update", c.online()) == []
    device.run("update", c.offline())
    assert device.run("update", c.offline()) == []


def test_takeover_by_another_connection_is_legal_and_the_old_one_cannot_end_it(device):
    device.run("update", c.online("c1", connected_at=NOW_NS + 5))
    (taken,) = device.run("update", c.online("c2", connected_at=NOW_NS))

    # The time of a connection never goes back.
    assert (taken.connection.id, taken.connection.connected_at) == ("c2", NOW_NS + 5)
    with refused("FAILED_PRECONDITION"):
        device.run("update", c.offline("c1"))


def test_unknown_device_cannot_go_offline(device):
    with refused("NOT_FOUND"):
        device.run("update", c.offline())
    with refused("NOT_FOUND"):
        device.run("update", c.twin(twin_enabled=False))


def test_twin_is_synchronised_by_its_connection_in_order(device):
    device.run("update", c.online())

    (syncing,) = device.run("update", c.synchronize(1, state=Twin.SYNCING, syncing_at=5))
    (done,) = device.run("update", c.synchronize(2, state=Twin.IN_SYNC, in_sync_at=9))
    (offline,) = device.run("update", c.offline())

    assert (syncing.twin_synchronization.state, syncing.twin_synchronization.syncing_at) == (Twin.SYNCING, 5)
    assert (done.twin_synchronization.syncing_at, done.twin_synchronization.in_sync_at) == (5, 9)
    assert offline.twin_synchronization.state == Twin.OUT_OF_SYNC


@pytest.mark.parametrize(
    "wrong",
    [
        c.synchronize(2, state=Twin.OUT_OF_SYNC),
        c.synchronize(2, state=Twin.SYNCING),
        c.synchronize(2, state=Twin.IN_SYNC),
        c.synchronize(1, state=Twin.IN_SYNC, in_sync_at=9),
        c.synchronize(2, "c2", state=Twin.IN_SYNC, in_sync_at=9),
        api_pb2.UpdateDeviceMetadataRequest(device_id=D1, command_metadata=c.metadata()),
        c.twin("", twin_enabled=False),
    ],
)
def test_wrong_metadata_is_refused(device, wrong):
    device.run("update", c.online())
    device.run("update", c.synchronize(1, state=Twin.SYNCING, syncing_at=5))

    with refused("INVALID_ARGUMENT"):
        device.run("update", wrong)


def test_twin_is_switched_off_by_a_confirmed_command(device):
    device.run("update", c.online())

    (pending,) = device.run("update", c.twin(twin_enabled=False, time_to_live=10**9))
    (done,) = device.run("confirm", c.confirm_twin())

    assert (pending.valid_until, pending.twin_enabled) == (NOW_NS + 10**9, False)
    assert (done.twin_enabled, done.twin_synchronization.state) == (False, Twin.DISABLED)
    assert done.connection.status == events.Connection.ONLINE
    with refused("FAILED_PRECONDITION"):
        device.run("update", c.synchronize(1, state=Twin.SYNCING, syncing_at=5))
    device.run("update", c.twin("t2", twin_enabled=True))
    (on,) = device.run("confirm", c.confirm_twin("t2"))
    assert on.twin_synchronization.state == Twin.OUT_OF_SYNC


def test_refused_and_cancelled_updates_change_nothing(device):
    device.run("update", c.online())
    device.run("update", c.twin("t1", twin_enabled=False))
    device.run("update", c.twin("t2", twin_force_synchronization=True))

    (failed,) = device.run("confirm", c.confirm_twin("t1", events.ERROR))
    request = api_pb2.CancelPendingMetadataUpdatesRequest(device_id=D1, command_metadata=c.metadata())
    (cancelled,) = device.run("cancel", request)

    assert (failed.twin_enabled, failed.canceled) == (True, False)
    assert (cancelled.twin_enabled, cancelled.canceled) == (True, True)
    assert device.aggregate.pendings == {}
    with refused("NOT_FOUND"):
        device.run("cancel", request)


def test_forced_synchronisation_has_its_time(device):
    device.run("update", c.online())
    device.run("update", c.synchronize(1, state=Twin.IN_SYNC, in_sync_at=5))
    device.run("update", c.twin(twin_force_synchronization=True))

    (done,) = device.run("confirm", c.confirm_twin())

    assert done.twin_synchronization == Twin(state=Twin.OUT_OF_SYNC, force_synchronization_at=NOW_NS)


def test_snapshot_keeps_pending_updates(device):
    device.run("update", c.online())
    device.run("update", c.twin(twin_enabled=False))
    (snapshot,) = device.aggregate.stamped([device.aggregate.snapshot(CALLER)], None, CALLER)

    other = MetadataAggregate(device.aggregate.key)
    other.apply(snapshot)

    assert (other.is_online, list(other.pendings), other.current) == (True, ["t1"], device.aggregate.current)
