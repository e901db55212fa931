"""Requests to the machines of nodes: what states they are in, and transitions from outside.

| subject                                     | who answers                          |
|---------------------------------------------|--------------------------------------|
| `<collective>.machines.states`              | every node                           |
| `<collective>.machines.states.<identity>`   | one node                             |
| `<collective>.machines.transition`          | every node that has such a machine   |
| `<collective>.machines.transition.<identity>` | one node                           |

Requests and answers are JSON objects. A request may choose machines by `name`, `version`, `path` and `id`, and names a
`transition`, as the input of the original's `choria_util` agent does. An answer has `identity`, and `machines` or
`error`.

Any client that may publish to these subjects may move machines: servers limit that by permissions.
"""

import asyncio
import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from jetlake.agents.node import LocalNode
from jetlake.choria.subjects import token_text

if TYPE_CHECKING:
    from nats.aio.msg import Msg

    from jetlake.agents.machines.host import MachineHost
    from jetlake.agents.machines.machine import Machine

__all__ = ["Requests", "states_subject", "transition_subject"]

REQUEST_BYTES_MAX = 64 * 1024
"""Of one request; real ones have some hundred."""

RETRY_S = 5.0
"""Before the next attempt to subscribe."""

PENDING_MAX = 1_000
"""Requests that wait; further ones are dropped without an answer."""

TRANSITIONS_MAX = 64
"""Transitions from outside that are under way: a machine that is slowed down must not hold up requests to others."""

CHOICES = ("name", "version", "path", "id")


def states_subject(collective: str, identity: str = "") -> str:
    """Return where to ask for states: one node, or all of them."""
    return f"{collective}.machines.states" + (f".{token_text(identity)}" if identity else "")


def transition_subject(collective: str, identity: str = "") -> str:
    """Return where to ask for a transition."""
    return f"{collective}.machines.transition" + (f".{token_text(identity)}" if identity else "")


class Requests:
    """Answers for one node."""

    def __init__(self, host: "MachineHost", node: LocalNode) -> None:
        self._host = host
        self._node = node
        self._firing: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Subscribe, and answer until cancelled; tries again if that is not possible."""
        from nats.errors import Error

        while True:
            await self._node.wait_connected()
            try:
                await self._serve()
            except Error as error:
                self._node.report("warning", f"requests for machines cannot be answered: {error}")
            await asyncio.sleep(RETRY_S)

    async def _serve(self) -> None:
        from nats.errors import Error

        collective, identity = self._node.options.main_collective, self._node.options.identity
        handlers = {
            states_subject(collective): self._states,
            states_subject(collective, identity): self._states,
            transition_subject(collective): self._transition_of_all,
            transition_subject(collective, identity): self._transition_of_one,
        }
        subscriptions = []
        try:
            for subject, handler in handlers.items():
                subscriptions.append(
                    await self._node.connection.subscribe(subject, cb=handler, pending_msgs_limit=PENDING_MAX)
                )
            await asyncio.Event().wait()
        finally:
            for task in self._firing:
                task.cancel()
            for subscription in subscriptions:
                # A connection that is closed has no subscriptions any more.
                with suppress(Error):
                    await subscription.unsubscribe()

    async def _states(self, message: "Msg") -> None:
        request = _decoded(message.data)
        if request is None:
            await self._answer(message, {"error": "the request is not a JSON object"})
            return
        machines = self._host.find(**_choice(request))
        await self._answer(message, {"machines": [machine.describe() for machine in machines]})

    async def _transition_of_one(self, message: "Msg") -> None:
        await self._transition(message, answer_when_absent=True)

    async def _transition_of_all(self, message: "Msg") -> None:
        await self._transition(message, answer_when_absent=False)

    async def _transition(self, message: "Msg", *, answer_when_absent: bool) -> None:
        request = _decoded(message.data)
        event = None if request is None else request.get("transition")
        if request is None or not isinstance(event, str) or not event:
            await self._answer(message, {"error": 'the request names no transition: send {"name": …, "transition": …}'})
            return
        choice = _choice(request)
        if not any(choice.values()):
            await self._answer(message, {"error": "the request names no machine: give name, version, path or id"})
            return
        machines = self._host.find(**choice)
        if not machines:
            if answer_when_absent:
                shown = ", ".join(f"{key}='{request.get(key, '')}'" for key in CHOICES)
                await self._answer(message, {"error": f"could not find machine matching criteria {shown}"})
            return
        if len(machines) > 1:
            await self._answer(message, {"error": f"{len(machines)} machines match: give version, path or id too"})
            return
        while len(self._firing) >= TRANSITIONS_MAX:
            await asyncio.wait(self._firing, return_when=asyncio.FIRST_COMPLETED)
        task = asyncio.create_task(self._fire(message, machines[0], event))
        self._firing.add(task)
        task.add_done_callback(self._firing.discard)

    async def _fire(self, message: "Msg", machine: "Machine", event: str) -> None:
        if not machine.can(event):
            await self._answer(message, {"error": f"transition {event} is not valid while in {machine.state} state"})
            return
        change = await machine.fire(event)
        if change is None and not machine.can(event):
            # Another event was faster.
            await self._answer(message, {"error": f"transition {event} is not valid while in {machine.state} state"})
            return
        await self._answer(message, {"machines": [machine.describe()]})

    async def _answer(self, message: "Msg", body: dict[str, Any]) -> None:
        from nats.errors import Error

        if not message.reply:
            return
        payload = json.dumps({"identity": self._node.options.identity, **body}).encode()
        if len(payload) > self._node.payload_bytes_max:
            payload = json.dumps(
                {"identity": self._node.options.identity, "error": "the answer is too large: choose machines by name"}
            ).encode()
        try:
            await message.respond(payload)
        except Error as error:
            self._node.report("warning", f"an answer could not be sent: {error}")


def _decoded(payload: bytes) -> dict[str, Any] | None:
    if len(payload) > REQUEST_BYTES_MAX:
        return None
    if not payload:
        return {}
    try:
        request = json.loads(payload)
    except (ValueError, RecursionError):
        return None
    return request if isinstance(request, dict) else None


def _choice(request: dict[str, Any]) -> dict[str, str]:
    def text(key: str) -> str:
        value = request.get(key)
        return value if isinstance(value, str) else ""

    # The original calls the id `instance`.
    return {
        "name": text("name"),
        "version": text("version"),
        "path": text("path"),
        "machine_id": text("id") or text("instance"),
    }
