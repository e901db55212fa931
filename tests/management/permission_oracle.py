"""Every decision about rights against a model that knows only sets of subjects.

```sh
python -m tests.management.permission_oracle --decisions 1000000
```

Each round makes a user with generated rights. Its requests, of all dialects, go through the real endpoints with the
real rules of the engine; whether one is refused for its rights, and what it has the engine do, is compared with the
model.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from jetlake import _engine
from jetlake.management.requests.rights import SendTarget
from tests.management.api_twin import ApiTwin
from tests.management.engine_twin import TwinRequest
from tests.management.permission_model import REQUESTS, Asked, Lists, Model, World, random_pattern

REQUESTS_OF_USER = 40
"""Requests of one user, until the next one gets other rights and other streams."""

RULES_PER_REQUEST = 25
"""Patterns that are asked about directly for each request."""

CONNECTION = {"id": 7, "ip": "127.0.0.1", "port": 1, "started_unix_ns": 0, "last_activity_unix_ns": 0}

WORLD = World()

VIOLATION = "permissions violation"


class RestrictedRequest(TwinRequest, frozen=True, kw_only=True):
    """A request of somebody with rights, which the engine's own rules decide."""

    rights: _engine.Rights

    def may_publish(self, pattern: str) -> bool:
        return self.rights.may_publish(pattern)

    def may_send_to(self, target: str, pattern: str) -> bool:
        return self.rights.may_send_to(target, pattern)


@dataclass
class Tally:
    """What was decided, and where both disagree."""

    decisions: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    disagreements: list[str] = field(default_factory=list)

    def note(self, kind: str) -> None:
        self.decisions += 1
        self.kinds[kind] += 1


class Round:
    """One user and its requests."""

    def __init__(self, generator: random.Random, tally: Tally, api: ApiTwin) -> None:
        self._generator = generator
        self._tally = tally
        self._lists = Lists.random(generator, WORLD)
        self._model = Model(self._lists)
        self._rights = _engine.Rights(self._lists.as_verdict())
        self._api = api
        self._prepared: list[object] | None = None

    def run(self) -> None:
        for _ in range(REQUESTS_OF_USER):
            for _ in range(RULES_PER_REQUEST):
                self._compare_rules()
            self._compare_request(self._generator.choice(REQUESTS)(self._generator, WORLD))

    def _compare_rules(self) -> None:
        pattern = random_pattern(self._generator, WORLD)
        target = self._generator.choice(list(SendTarget))
        decided = (self._rights.may_publish(pattern), self._rights.may_send_to(target.value, pattern))
        for_sender = target.value in (
            "reply subject",
            "deliver subject",
            "snapshot deliver subject",
            "scan deliver subject",
        )
        expected = (self._model.may_publish(pattern), self._model.may_send_to(pattern, for_sender=for_sender))
        self._tally.note("rule: publish")
        self._tally.note(f"rule: {target.value}")
        if decided != expected:
            self._disagree(f"{pattern} as {target.value}: {decided}, expected {expected}")

    def _compare_request(self, asked: Asked) -> None:
        self._tally.note(f"request: {'.'.join(asked.subject.split('.')[:4])}")
        if self._model.may_publish(asked.subject) != self._rights.may_publish(asked.subject):
            self._disagree(f"{asked.subject} on the wire")
        if not self._model.may_publish(asked.subject):
            return
        self._prepare()
        before = self._effects()
        request = RestrictedRequest(subject=asked.subject, payload=asked.body, rights=self._rights)
        published = len(self._api.engine.published)
        self._api.manager.answer(request)
        answers = [payload for _, subject, payload, _ in self._api.engine.published[published:] if subject == "reply"]
        answer = answers[0].decode() if answers else ""
        is_refused = VIOLATION in answer
        is_allowed = asked.is_allowed(self._model)
        if is_refused and is_allowed:
            self._disagree(f"{asked} is refused, and allowed: {answer}")
        if not is_allowed and not is_refused and not self._is_other_refusal(answer):
            self._disagree(f"{asked} is answered, and not allowed: {answer}")
        self._check_effects(asked, before)

    def _check_effects(self, asked: Asked, before: set[tuple[str, str]]) -> None:
        """Whatever the engine was told to send to must be allowed, whichever request it came by."""
        for kind, place in self._effects() - before:
            self._tally.note(f"effect: {kind}")
            if not self._model.may_send_to(place, for_sender=kind != "republish"):
                self._disagree(f"{asked} has the server send to {place} ({kind})")

    def _effects(self) -> set[tuple[str, str]]:
        """Return everything that the engine sends to, by its own definitions."""
        effects = set()
        for stream in self._api.engine.streams.values():
            config: dict[str, Any] = json.loads(stream.definition)["config"]
            if "republish" in config:
                effects.add(("republish", config["republish"]["dest"]))
            for consumer in stream.consumers.values():
                if consumer.config.get("deliver_subject"):
                    effects.add(("deliver", consumer.config["deliver_subject"]))
        places = (asked.get("deliver_subject") for _, asked in self._api.engine.archives)
        return effects | {("chunks", place) for place in places if place}

    def _prepare(self) -> None:
        """See to it that the streams are there, and that nothing of an earlier request is."""
        api = self._api
        api.engine.archives.clear()
        api.engine.published.clear()
        if self._definitions() == self._prepared:
            return
        for name in api.catalog.streams_of("$G").names:
            api.ask(f"STREAM.DELETE.{name}")
        for template in api.manager.templates.names("$G"):
            api.manager.templates.remove("$G", template)
        for name in WORLD.streams:
            api.ask(f"STREAM.CREATE.{name}", {"name": name, "subjects": [f"{name.lower()}.>"], "allow_direct": True})
            api.ask(f"CONSUMER.DURABLE.CREATE.{name}.C", {"stream_name": name, "config": {"durable_name": "C"}})
        self._prepared = self._definitions()

    def _definitions(self) -> list[object]:
        """Return all that the engine keeps."""
        streams = self._api.engine.streams.items()
        kept = [(where, stream.definition, tuple(stream.consumers), stream.messages) for where, stream in streams]
        return [*kept, self._api.manager.templates.names("$G")]

    def _is_other_refusal(self, answer: str) -> bool:
        """Return whether a request was refused for another reason: then it has had no effect either."""
        return not answer or '"error"' in answer or answer.startswith("-ERR")

    def _disagree(self, what: str) -> None:
        self._tally.disagreements.append(f"{what}\n  with {self._lists}")


def run(
    decisions: int, seed: int, *, until_disagreement: bool = False, tell: Callable[[Tally], None] | None = None
) -> Tally:
    """Compare at least so many decisions, or stop when both disagree."""
    generator, tally = random.Random(seed), Tally()
    api = ApiTwin()
    api.engine.connections_json = json.dumps([CONNECTION]).encode()
    api.engine.interest.update(WORLD.universe)
    with tempfile.TemporaryDirectory() as folder:
        api.manager.templates.open(folder)
        while tally.decisions < decisions and not (until_disagreement and tally.disagreements):
            Round(generator, tally, api).run()
            if tell is not None:
                tell(tally)
    return tally


def main() -> int:
    """Compare, and say how it went."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--decisions", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=20_261_117)
    arguments = parser.parse_args()
    begun_at = time.monotonic()

    def tell(tally: Tally) -> None:
        sys.stderr.write(f"\r{tally.decisions:,} decisions, {len(tally.disagreements)} violations")
        sys.stderr.flush()

    tally = run(arguments.decisions, arguments.seed, tell=tell)
    for kind, count in sorted(tally.kinds.items()):
        sys.stdout.write(f"{count:>9,}  {kind}\n")
    for disagreement in tally.disagreements[:20]:
        sys.stdout.write(f"{disagreement}\n")
    seconds = time.monotonic() - begun_at
    violations = len(tally.disagreements)
    told = f"{tally.decisions:,} decisions, {violations} violations, seed {arguments.seed}, {seconds:.0f} s"
    sys.stdout.write(f"{told}\n")
    return 1 if tally.disagreements else 0


if __name__ == "__main__":
    sys.exit(main())
