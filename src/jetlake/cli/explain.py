"""Refusals of a server in the words of a person who uses streams: which stream, what it has, what to do.

Invariant: the number stays at the end, so that `jetlake errors lookup` finds it; a refusal that is not known here keeps
the server's own words.
"""

from typing import TYPE_CHECKING, Any

from jetlake.errors import ApiError, ClientError

if TYPE_CHECKING:
    from jetlake.client.api import Api

__all__ = ["explained"]

NO_CONSUMER = 10014
NAME_IN_USE = 10058
NO_STREAM = 10059
OVERLAP = 10065
CANNOT_RESTORE = 10130

NAMES_MAX = 20
"""Names that a message lists: more would hide the message."""


async def explained(api: "Api", error: ApiError) -> ApiError:
    """Return an error with a text for a person; asks the server for what it has if that helps."""
    try:
        text = await _text(api, error)
    except ClientError:
        # A user may be allowed to ask for one stream and not to list them all.
        text = ""
    return ApiError(error.code, error.error_code, text) if text else error


async def _text(api: "Api", error: ApiError) -> str:
    request, body = api.refused
    words = request.split(".")
    match error.error_code:
        case _ if error.error_code == NO_STREAM and len(words) > 2:
            return f"No stream {words[2]}. Existing streams: {_listed(await api.stream_names())}."
        case _ if error.error_code == NO_CONSUMER and len(words) > 3:
            there = _listed(await api.consumer_names(words[2]))
            return f"No consumer {words[3]} on stream {words[2]}. Existing consumers: {there}."
        case _ if error.error_code == NAME_IN_USE and words[:2] == ["STREAM", "CREATE"]:
            return f"{words[2]} exists with other settings. Use `jetlake stream edit {words[2]}`."
        case _ if error.error_code == CANNOT_RESTORE and len(words) > 2:
            return f"{words[2]} exists; add `--name NEW --subjects ...`."
        case _ if error.error_code == OVERLAP:
            return await _overlap(api, body)
        case _:
            return ""


async def _overlap(api: "Api", body: object) -> str:
    config: dict[str, Any] = body if isinstance(body, dict) else {}
    own = str(config.get("name", ""))
    for subject in config.get("subjects") or [own]:
        names = [name for name in await api.stream_names(str(subject)) if name != own]
        if names:
            return f"`{subject}` is already used by stream {_listed(names)}."
    return ""


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - NAMES_MAX} more" if len(names) > NAMES_MAX else ""
    return (", ".join(names[:NAMES_MAX]) or "none") + more
