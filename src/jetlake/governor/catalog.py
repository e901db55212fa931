"""The governors of a server, looked at and changed: what an operator does with them.

Every function takes an open `Api` and raises `ClientError`. To get a slot, use `Governor`.

Invariant: nothing here creates a governor except `add`; looking at one that is not there is an error.
"""

import base64
import time
from typing import Any

import msgspec

from jetlake.client.api import NOT_FOUND, Api
from jetlake.client.timestamps import read_time
from jetlake.errors import ApiError, ClientError, ConfigurationError
from jetlake.governor import events
from jetlake.governor.layout import (
    CAPACITY_MAX,
    DEFAULT_COLLECTIVE,
    STREAM_PREFIX,
    GovernorSettings,
    check_collective,
    check_name,
    settings_of,
    stream_config,
    stream_of,
    subject_of,
)

MESSAGE_ID = "Nats-Msg-Id"

STANDALONE = 10074
"""The error of a server that is not clustered when it is asked for several replicas."""

_STREAM_NOT_FOUND = 10059
_UPDATED = ("subjects", "max_msgs", "max_age", "num_replicas")


class LeaseInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One lease as the stream has it."""

    id: int
    holder: str
    age_ns: int
    # Of the campaign that got it; empty for holders that do not send one, such as those of Choria.
    message_id: str = ""


class GovernorView(msgspec.Struct, frozen=True, kw_only=True):
    """A governor and its leases, oldest first."""

    settings: GovernorSettings
    leases: list[LeaseInfo]


async def names(api: Api, collective: str = DEFAULT_COLLECTIVE) -> list[str]:
    """Return the names of the governors of a collective, sorted."""
    pattern = subject_of("*", check_collective(collective))
    found = await api.stream_names(pattern)
    return sorted(name.removeprefix(STREAM_PREFIX) for name in found if name.startswith(STREAM_PREFIX))


async def find(api: Api, name: str) -> GovernorSettings | None:
    """Return the settings of a governor, or None if no governor has that name."""
    info = await _info(api, name)
    return None if info is None else _settings(info["config"])


async def add(api: Api, settings: GovernorSettings) -> GovernorSettings:
    """Create a governor, or make an existing one so, and return what it is now. Leases stay."""
    info = await _info(api, settings.name)
    if info is None:
        made = await api.request(f"STREAM.CREATE.{settings.stream}", stream_config(settings))
    else:
        wanted = stream_config(settings)
        # Anything else that a user has set on the stream, such as its description, is not ours to change.
        config = {**info["config"], **{key: wanted[key] for key in _UPDATED}}
        if settings.expires_ns:
            # A window longer than the age of messages is refused.
            config["duplicate_window"] = min(int(config.get("duplicate_window", 0)), settings.expires_ns)
        made = await api.request(f"STREAM.UPDATE.{settings.stream}", config)
    return _settings(made["config"])


async def view(api: Api, name: str) -> GovernorView:
    """Return a governor with its leases."""
    info = await _known(api, name)
    return GovernorView(settings=_settings(info["config"]), leases=await leases(api, name, info))


async def leases(
    api: Api, name: str, info: dict[str, Any] | None = None, *, leases_max: int = CAPACITY_MAX
) -> list[LeaseInfo]:
    """Return the leases of a governor, oldest first."""
    if info is None:
        info = await _known(api, name)
    now_ns = read_time(info["ts"]) if info.get("ts") else time.time_ns()
    found: list[LeaseInfo] = []
    sequence = int(info["state"]["first_seq"])
    # One that vanishes while we read is simply not listed; one that comes later is left for the next time.
    while sequence <= int(info["state"]["last_seq"]) and len(found) < leases_max:
        lease = await lease_at(api, name, sequence, now_ns=now_ns, following=True)
        if lease is None:
            break
        found.append(lease)
        sequence = lease.id + 1
    return found


async def lease_at(
    api: Api,
    name: str,
    sequence: int,
    *,
    now_ns: int | None = None,
    following: bool = False,
    timeout_s: float | None = None,
) -> LeaseInfo | None:
    """Return the lease with an id, with `following` the next one from there on; None if there is none."""
    body: dict[str, Any] = {"seq": sequence} | ({"next_by_subj": ">"} if following else {})
    try:
        answer = await api.request(f"STREAM.MSG.GET.{stream_of(check_name(name))}", body, timeout_s=timeout_s)
    except ApiError as error:
        if error.code != NOT_FOUND:
            raise
        return None
    message = answer["message"]
    age_ns = (time.time_ns() if now_ns is None else now_ns) - read_time(message["time"])
    return LeaseInfo(
        id=int(message["seq"]),
        holder=base64.b64decode(message.get("data", "")).decode(errors="replace"),
        age_ns=max(age_ns, 0),
        message_id=_header(base64.b64decode(message.get("hdrs", "")), MESSAGE_ID),
    )


async def evict(api: Api, name: str, lease_id: int, component: str = events.COMMAND_LINE) -> str:
    """End the lease with an id, and return its holder. The holder is not notified, and continues."""
    await _known(api, name)
    lease = await lease_at(api, name, lease_id)
    if lease is None:
        raise ClientError(f"governor {name} has no lease {lease_id}; `jetlake governor view {name}` shows those it has")
    await api.request(f"STREAM.MSG.DELETE.{stream_of(name)}", {"seq": lease_id})
    await events.publish(
        api.connection, "eviction", governor=name, identity=lease.holder, component=component, sequence=lease_id
    )
    return lease.holder


async def reset(api: Api, name: str) -> int:
    """End all leases, and return how many there were."""
    await _known(api, name)
    answer = await api.request(f"STREAM.PURGE.{stream_of(name)}", {})
    return int(answer.get("purged", 0))


async def remove(api: Api, name: str) -> None:
    """Delete a governor."""
    await _known(api, name)
    await api.request(f"STREAM.DELETE.{stream_of(name)}")


def unknown(name: str) -> ClientError:
    """Return the error about a governor that is not there."""
    return ClientError(f"unknown governor {name!r}: create it with `jetlake governor add {name} CAPACITY EXPIRE`")


async def _known(api: Api, name: str) -> dict[str, Any]:
    info = await _info(api, name)
    if info is None:
        raise unknown(name)
    return info


async def _info(api: Api, name: str) -> dict[str, Any] | None:
    try:
        return await api.request(f"STREAM.INFO.{stream_of(check_name(name))}")
    except ApiError as error:
        if error.error_code != _STREAM_NOT_FOUND:
            raise
        return None


def _settings(config: dict[str, Any]) -> GovernorSettings:
    try:
        return settings_of(config)
    except ConfigurationError as error:
        raise ClientError(str(error)) from error


def _header(block: bytes, name: str) -> str:
    for line in block.decode(errors="replace").split("\r\n")[1:]:
        key, _, value = line.partition(":")
        if key.lower() == name.lower():
            return value.strip()
    return ""
