"""One dead letter with its payload; redrive, as it is or edited, and delete, of one letter or of a group.

The rules are those of `jetlake dead`, because `DeadLetters` has them: a letter that a client has written, or that names
a subject its stream does not listen on, stays where it is.
"""

from collections.abc import Callable, Coroutine
from typing import Any

import msgspec
from aiohttp import web

from jetlake.client.api import token
from jetlake.client.dead_letters import DeadLetter, DeadLetters
from jetlake.dashboard.confirmation import ConfirmationDialog, check_confirmed, confirm, done
from jetlake.dashboard.keys import session_of
from jetlake.dashboard.pages.dead_groups import PATH, Group, find_group, survey
from jetlake.dashboard.pages.page import Route
from jetlake.dashboard.payloads import edit_of, read_edited, view_of
from jetlake.dashboard.rendering import attachment, command_line, render
from jetlake.dashboard.session_api import PermissionRefusedError
from jetlake.dashboard.sessions import Session
from jetlake.errors import ClientError
from jetlake.units import shown_size

__all__ = ["REDRIVE_MAX", "ROUTES"]

REDRIVE_MAX = 1_000
"""Letters of a group that one click redrives or deletes, oldest first: some seconds of work."""

Work = Callable[[DeadLetters, DeadLetter], Coroutine[Any, Any, object]]


async def show(request: web.Request) -> web.Response:
    """Show a letter with its headers and its payload."""
    stream, letter = await _letter(request)
    return render(
        request,
        "dead_letter.html",
        stream=stream,
        letter=letter,
        view=view_of(letter.payload, request.query.get("as", "")),
        edit=edit_of(letter.payload),
        command=command_line(request, "dead", "show", stream, str(letter.sequence)),
        redrive_command=command_line(request, "dead", "redrive", stream, str(letter.sequence)),
    )


async def download(request: web.Request) -> web.Response:
    """Send the payload of a letter as a file."""
    stream, letter = await _letter(request)
    return attachment(letter.payload, f"{stream}-{letter.sequence}")


async def redrive(request: web.Request) -> web.Response:
    """Publish a message again where it came from, with the payload of the form if there is one."""
    form = await request.post()
    stream, letter = await _letter(request)
    if "payload" in form:
        letter = msgspec.structs.replace(letter, payload=read_edited(form))
    session = session_of(request)
    async with DeadLetters(session.api, stream) as dead:
        sequence = await _redriven(session, dead, letter)
    told = f"Redrove letter {letter.sequence} to {letter.original_subject}: {letter.stream} has it as {sequence}."
    return done(request, told, f"{PATH}/{stream}")


async def preview_delete(request: web.Request) -> web.Response:
    """Show which letter would be deleted."""
    stream, letter = await _letter(request)
    return confirm(
        request,
        ConfirmationDialog(
            title=f"Delete dead letter {letter.sequence}",
            facts=(
                ("From", f"{letter.stream}, consumer {letter.consumer}"),
                ("Subject", letter.original_subject),
                ("Reason", letter.reason),
                ("Size", shown_size(len(letter.payload))),
            ),
            warning="The letter may be all that is left of its message. This cannot be undone.",
            word=stream,
            action=f"{PATH}/{stream}/letter/{letter.sequence}/delete",
            button="Delete",
            command=command_line(request, "stream", "rm-msg", stream, str(letter.sequence)),
        ),
    )


async def delete(request: web.Request) -> web.Response:
    """Delete a letter."""
    stream, letter = await _letter(request)
    await check_confirmed(request, stream)
    async with DeadLetters(session_of(request).api, stream) as dead:
        await dead.remove(letter)
    return done(request, f"Deleted dead letter {letter.sequence} of {stream}.", f"{PATH}/{stream}")


async def preview_redrive_group(request: web.Request) -> web.Response:
    """Show how many letters would be redriven, and where to."""
    stream, group = await _group(request)
    return _confirm_group(
        request,
        stream,
        group,
        action="redrive",
        warning="The messages are published again where they came from, and their letters are removed. Letters that "
        "the server refuses stay.",
        command=command_line(request, "dead", "redrive", stream, *_numbers(group)),
    )


async def redrive_group(request: web.Request) -> web.Response:
    """Redrive the letters of a group that were there when it was previewed."""
    session = session_of(request)

    async def work(dead: DeadLetters, letter: DeadLetter) -> None:
        # The group was read without payloads.
        await _redriven(session, dead, await dead.get(letter.sequence))

    return await _change_group(request, "Redrove", work)


async def preview_delete_group(request: web.Request) -> web.Response:
    """Show how many letters would be deleted."""
    stream, group = await _group(request)
    one = command_line(request, "stream", "rm-msg", stream, "$letter", "--force").replace("'$letter'", "$letter")
    return _confirm_group(
        request,
        stream,
        group,
        action="delete",
        warning="The letters may be all that is left of their messages. This cannot be undone.",
        command=f"for letter in {' '.join(_numbers(group))}; do {one}; done",
    )


async def delete_group(request: web.Request) -> web.Response:
    """Delete the letters of a group that were there when it was previewed."""
    return await _change_group(request, "Deleted", lambda dead, letter: dead.remove(letter))


async def _redriven(session: Session, dead: DeadLetters, letter: DeadLetter) -> int:
    return await session.api.until_refused(dead.redrive(letter), letter.original_subject)


def _numbers(group: Group) -> list[str]:
    return [str(letter.sequence) for letter in group.letters[:REDRIVE_MAX]]


def _confirm_group(
    request: web.Request, stream: str, group: Group, *, action: str, warning: str, command: str
) -> web.Response:
    letters = group.letters[:REDRIVE_MAX]
    left = len(group.letters) - len(letters)
    return confirm(
        request,
        ConfirmationDialog(
            title=f"{action.capitalize()} {len(letters):,} dead letters",
            facts=(
                ("From", f"{group.stream}, consumer {group.consumer}"),
                ("Cause", group.cause or "no reason given"),
                ("Letters", f"{len(letters):,}" + (f" of {len(group.letters):,}, the oldest" if left else "")),
            ),
            warning=warning,
            word=stream,
            # Letters that come later are not part of what was previewed.
            action=f"{PATH}/{stream}/group/{group.key}/{action}?last={letters[-1].sequence}",
            button=action.capitalize(),
            command=command,
        ),
    )


async def _change_group(request: web.Request, verb: str, work: Work) -> web.Response:
    stream, group = await _group(request)
    await check_confirmed(request, stream)
    last = request.query.get("last", "")
    last_sequence = int(last) if last.isdecimal() and len(last) < 20 else 0
    letters = [letter for letter in group.letters if letter.sequence <= last_sequence][:REDRIVE_MAX]
    problems: list[str] = []
    async with DeadLetters(session_of(request).api, stream) as dead:
        for letter in letters:
            try:
                await work(dead, letter)
            except PermissionRefusedError:
                # The others would be refused as well.
                raise
            except ClientError as error:
                problems.append(str(error))
    told = f"{verb} {len(letters) - len(problems):,} letters of {stream}."
    if problems:
        told += f" {len(problems):,} stay where they are: {problems[0]}"
    return done(request, told, f"{PATH}/{stream}")


async def _letter(request: web.Request) -> tuple[str, DeadLetter]:
    stream = token(request.match_info["stream"])
    async with DeadLetters(session_of(request).api, stream) as dead:
        return stream, await dead.get(int(request.match_info["letter"]))


async def _group(request: web.Request) -> tuple[str, Group]:
    stream = token(request.match_info["stream"])
    return stream, find_group(await survey(session_of(request), stream), request.match_info["group"])


_LETTER = PATH + "/{stream}/letter/{letter:[0-9]{1,19}}"
_GROUP = PATH + "/{stream}/group/{group}"

ROUTES = (
    Route("GET", _LETTER, show, name="dead.letter"),
    Route("GET", _LETTER + "/download", download, name="dead.download"),
    Route("POST", _LETTER + "/redrive", redrive, name="dead.redrive"),
    Route("GET", _LETTER + "/delete", preview_delete, name="dead.delete"),
    Route("POST", _LETTER + "/delete", delete),
    Route("GET", _GROUP + "/redrive", preview_redrive_group, name="dead.group.redrive"),
    Route("POST", _GROUP + "/redrive", redrive_group),
    Route("GET", _GROUP + "/delete", preview_delete_group, name="dead.group.delete"),
    Route("POST", _GROUP + "/delete", delete_group),
)
