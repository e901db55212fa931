"""Who may do what, decided from scratch: patterns are sets of concrete subjects, and requests are what they do.

Nothing of the product is used here: both would have to be wrong in the same way. `Model` knows the rights of one user;
`REQUESTS` are all requests of all dialects, each with what nats-server would have asked the user to have for the
same data or effect.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

API = "$JS.API."


@cache
def matches(pattern: str, subject: str) -> bool:
    """Return whether a concrete subject is one of a pattern's."""
    if pattern == ">":
        return True
    wanted, _, pattern_rest = pattern.partition(".")
    token, _, subject_rest = subject.partition(".")
    if wanted not in ("*", token):
        return False
    if not pattern_rest or not subject_rest:
        return not pattern_rest and not subject_rest
    return matches(pattern_rest, subject_rest)


@cache
def covers(rule: str, pattern: str) -> bool:
    """Return whether a rule has all subjects of a pattern: those that nobody else names show it."""
    tokens = ["~" if token == "*" else token for token in pattern.split(".")]
    tails = [["~"], ["~", "~"]] if tokens[-1] == ">" else [[tokens[-1]]]
    return all(matches(rule, ".".join([*tokens[:-1], *tail])) for tail in tails)


@cache
def meet(one: str, other: str) -> bool:
    """Return whether two patterns have a subject in common: one is made of the words of both."""
    first, second = one.split("."), other.split(".")
    for length in range(1, max(len(first), len(second)) + 1):
        tokens = []
        for position in range(length):
            words = [each[position] for each in (first, second) if position < len(each)]
            tokens.append(next((word for word in words if word not in ("*", ">")), "~"))
        subject = ".".join(tokens)
        if matches(one, subject) and matches(other, subject):
            return True
    return False


@dataclass(frozen=True)
class World:
    """The names that one user can use, and every concrete subject that can be made of them."""

    mark: str = ""
    streams: tuple[str, ...] = field(init=False)
    universe: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "streams", (f"A{self.mark}", f"B{self.mark}"))
        object.__setattr__(self, "universe", tuple(dict.fromkeys(self._subjects())))

    @property
    def new(self) -> str:
        return f"N{self.mark}"

    def data(self, stream: str) -> list[str]:
        return [f"{stream.lower()}.{tail}" for tail in ("x", "y", "x.y")]

    @property
    def outside(self) -> list[str]:
        return [f"out{self.mark}.{tail}" for tail in ("x", "y", "x.y")] + [f"_INBOX.u{self.mark}.{n}" for n in "12"]

    def _subjects(self) -> list[str]:
        every = [*self.outside]
        names = (*self.streams, self.new, f"Z{self.mark}")
        for stream in names:
            every += self.data(stream)
            every += [f"dead.{stream}.{tail}" for tail in ("c", "c.d")]
            every += [API + f"{words}.{stream}" for words in ONE_NAME]
            every += [API + f"{words}.{stream}.{consumer}" for words in TWO_NAMES for consumer in ("C", "D", "Z")]
            every += [API + f"CONSUMER.CREATE.{stream}.D.{tail}" for tail in ("f", "f.g")]
            every += [API + f"DIRECT.GET.{stream}.{tail}" for tail in ("a", "a.x", f"{stream.lower()}.x")]
            every += [f"$JS.STREAM.{stream}.{tail}" for tail in OLD_TAILS]
            every += [f"$JS.RN.{stream}.C", f"$JS.TEMPLATE.{stream}.CREATE", f"$JS.TEMPLATE.{stream}.DELETE"]
            every += [f"$JS.TEMPLATE.{stream}.INFO"]
        every += [API + words for words in ("INFO", "STREAM.NAMES", "STREAM.LIST", "STREAM.TEMPLATE.NAMES")]
        every += [f"$JS.{words}" for words in OLD_WORDS]
        return every


ONE_NAME = (
    *("STREAM.CREATE", "STREAM.UPDATE", "STREAM.INFO", "STREAM.DELETE", "STREAM.PURGE", "STREAM.MSG.GET"),
    *("STREAM.MSG.DELETE", "STREAM.SNAPSHOT", "STREAM.RESTORE", "STREAM.FORK", "STREAM.WHY", "STREAM.SCAN.PLAN"),
    *("STREAM.SCAN.ROWS", "STREAM.SCAN.FILES", "CONSUMER.CREATE", "CONSUMER.NAMES", "CONSUMER.LIST", "DIRECT.GET"),
    *("STREAM.TEMPLATE.CREATE", "STREAM.TEMPLATE.INFO", "STREAM.TEMPLATE.DELETE", "STREAM.UPLOAD.COMMIT"),
)
TWO_NAMES = (
    *("CONSUMER.CREATE", "CONSUMER.DURABLE.CREATE", "CONSUMER.INFO", "CONSUMER.DELETE", "CONSUMER.PAUSE"),
    *("CONSUMER.MSG.NEXT", "CONSUMER.WHY", "CONSUMER.RESET", "CONSUMER.UNPIN"),
)
OLD_TAILS = (
    *("CREATE", "UPDATE", "INFO", "DELETE", "PURGE", "MSG.DELETE", "MSG.BYSEQ", "CONSUMERS"),
    *("EPHEMERAL.CONSUMER.CREATE", "CONSUMER.D.CREATE", "CONSUMER.C.INFO", "CONSUMER.C.DELETE", "CONSUMER.C.NEXT"),
)
OLD_WORDS = (
    *("ENABLED", "INFO", "STREAM.LIST", "TEMPLATE.LIST", "MSGSETS", "MSGSET.CREATE", "MSGSET.INFO", "MSGSET.DELETE"),
    *("MSGSET.PURGE", "MSGSET.MSG.DELETE", "OBSERVABLES", "OBSERVABLE.CREATE", "OBSERVABLE.INFO", "OBSERVABLE.DELETE"),
)


@dataclass(frozen=True)
class Lists:
    """What a configuration gives to a user; no list of allowed ones allows all."""

    publish_allow: tuple[str, ...] | None
    publish_deny: tuple[str, ...]
    subscribe_allow: tuple[str, ...] | None
    subscribe_deny: tuple[str, ...]

    @classmethod
    def random(cls, generator: random.Random, world: World) -> Lists:
        def patterns(most: int) -> tuple[str, ...]:
            return tuple(random_pattern(generator, world) for _ in range(generator.randint(0, most)))

        broad = ("$JS.>", "$JS.API.>", ">", f"{world.streams[0].lower()}.>", f"{API}STREAM.>", f"{API}CONSUMER.>")
        allow = (*patterns(6), *generator.sample(broad, generator.randint(0, 3)))
        first, second = world.streams
        # What an operator would deny, written for nats-server.
        usual = [
            API + words for words in (f"STREAM.MSG.GET.{first}", f"STREAM.INFO.{first}", f"CONSUMER.INFO.{first}.C")
        ]
        usual += [
            API + words for words in (f"STREAM.CREATE.{world.new}", f"STREAM.*.{second}", f"CONSUMER.*.{second}.>")
        ]
        usual += [f"{API}STREAM.MSG.GET.*", f"{API}DIRECT.GET.>", f"{API}CONSUMER.CREATE.>", f"{API}>"]
        denied = generator.sample(usual, generator.randint(0, 4)) if generator.random() < 0.5 else []
        return cls(
            publish_allow=allow if generator.random() < 0.6 else None,
            publish_deny=(*patterns(4), *denied),
            subscribe_allow=(*patterns(3), "_INBOX.>") if generator.random() < 0.6 else None,
            subscribe_deny=patterns(2),
        )

    def as_verdict(self) -> bytes:
        """Return them as the engine takes them."""

        def of(allow: tuple[str, ...] | None, deny: tuple[str, ...]) -> dict[str, Any]:
            return {"allow": None if allow is None else list(allow), "deny": list(deny)}

        publish, subscribe = (
            of(self.publish_allow, self.publish_deny),
            of(self.subscribe_allow, self.subscribe_deny),
        )
        return json.dumps({"publish": publish, "subscribe": subscribe, "responses": None}).encode()

    def as_configuration(self) -> str:
        """Return them as a file of configuration has them."""

        def of(allow: tuple[str, ...] | None, deny: tuple[str, ...]) -> str:
            # A file cannot say that nothing is allowed but by something that is not there.
            allowed = "" if allow is None else f"allow: {json.dumps(list(allow) or ['~'])}, "
            return f"{{ {allowed}deny: {json.dumps(list(deny) or ['~'])} }}"

        publish, subscribe = (
            of(self.publish_allow, self.publish_deny),
            of(self.subscribe_allow, self.subscribe_deny),
        )
        return f"{{ publish: {publish}, subscribe: {subscribe} }}"


def random_pattern(generator: random.Random, world: World) -> str:
    """Return a pattern that covers some subject of the world."""
    tokens = generator.choice(world.universe).split(".")
    shape = generator.random()
    if shape < 0.35:
        position = generator.randrange(len(tokens))
        tokens[position] = "*"
    elif shape < 0.7:
        tokens = [*tokens[: generator.randint(1, max(len(tokens) - 1, 1))], ">"]
    return ".".join(tokens)


class Model:
    """The rights of one user."""

    def __init__(self, lists: Lists) -> None:
        self.lists = lists

    def may_publish(self, pattern: str) -> bool:
        """Return whether all of a pattern's subjects may be published to."""
        return self._allows(self.lists.publish_allow, self.lists.publish_deny, pattern)

    def may_subscribe(self, pattern: str) -> bool:
        """Return whether all of a pattern's subjects may be subscribed to."""
        return self._allows(self.lists.subscribe_allow, self.lists.subscribe_deny, pattern)

    def may_send_to(self, pattern: str, *, for_sender: bool) -> bool:
        """Return whether the server may send there for this user: what is for it, or what is for others."""
        if self.may_publish(pattern):
            return True
        if not for_sender or not self.may_subscribe(pattern):
            return False
        if pattern.startswith("_INBOX."):
            return True
        is_denied = any(meet(rule, pattern) for rule in self.lists.publish_deny)
        return self.lists.subscribe_allow is not None and not is_denied

    def may_read(self, stream: str) -> bool:
        """Return whether a stream of the account can be read in any of the ways of nats-server."""
        ways = ("STREAM.MSG.GET.{}", "DIRECT.GET.{}", "CONSUMER.CREATE.{}", "CONSUMER.CREATE.{}.>")
        return any(self.may_publish(API + way.format(stream)) for way in ways)

    def _allows(self, allow: tuple[str, ...] | None, deny: tuple[str, ...], pattern: str) -> bool:
        is_allowed = allow is None or any(covers(rule, pattern) for rule in allow)
        return is_allowed and not any(meet(rule, pattern) for rule in deny)


@dataclass(frozen=True)
class Asked:
    """One request, and what it takes: all of `needs`, to read all of `reads`, and to send to all of `sends`."""

    subject: str
    body: bytes = b""
    needs: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    # Each with whether it is for the sender.
    sends: tuple[tuple[str, bool], ...] = ()

    def is_allowed(self, model: Model) -> bool:
        """Return whether a user may have all of it, once the request has come through."""
        return (
            all(model.may_publish(API + needed) for needed in self.needs)
            and all(model.may_read(stream) for stream in self.reads)
            and all(model.may_send_to(pattern, for_sender=for_sender) for pattern, for_sender in self.sends)
        )


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()


def _stream_body(generator: random.Random, world: World, name: str) -> tuple[dict[str, Any], list[tuple[str, bool]]]:
    """Return a configuration that may send somewhere, and where to."""
    config: dict[str, Any] = {"name": name, "subjects": [f"{name.lower()}.>"], "allow_direct": True}
    sends = []
    if generator.random() < 0.5:
        place = generator.choice([f"out{world.mark}.>", f"{world.streams[1].lower()}.>", f"dead.{name}.>"])
        config["republish"] = {"src": f"{name.lower()}.>", "dest": place}
        sends.append((place, False))
    if generator.random() < 0.3:
        config["metadata"] = {"jetlake.dead_letters": world.streams[1]}
        sends.append((f"dead.{name}.>", False))
    return config, sends


def _target(generator: random.Random, world: World) -> str:
    return generator.choice([*world.outside, *world.data(f"Z{world.mark}")])


def create_stream(generator: random.Random, world: World) -> Asked:
    config, sends = _stream_body(generator, world, world.new)
    reads = []
    if generator.random() < 0.4:
        origin = generator.choice(world.streams)
        # A stream that republishes copies nothing here, so that neither hinders the other.
        config = {"name": world.new, "sources": [{"name": origin}]}
        sends, reads = [], [origin]
    return Asked(f"{API}STREAM.CREATE.{world.new}", _json(config), reads=tuple(reads), sends=tuple(sends))


def update_stream(generator: random.Random, world: World) -> Asked:
    stream = world.streams[0]
    config, sends = _stream_body(generator, world, stream)
    return Asked(f"{API}STREAM.UPDATE.{stream}", _json(config), sends=tuple(sends))


def restore_stream(generator: random.Random, world: World) -> Asked:
    config, sends = _stream_body(generator, world, world.new)
    return Asked(f"{API}STREAM.RESTORE.{world.new}", _json({"config": config, "state": {}}), sends=tuple(sends))


def fork_stream(_generator: random.Random, world: World) -> Asked:
    stream = world.streams[0]
    needs = (f"STREAM.MSG.GET.{stream}", f"STREAM.CREATE.{world.new}")
    body = _json({"name": world.new, "subjects": [f"{world.new.lower()}.>"]})
    return Asked(f"{API}STREAM.FORK.{stream}", body, needs=needs)


def create_consumer(generator: random.Random, world: World) -> Asked:
    stream, target = generator.choice(world.streams), _target(generator, world)
    config: dict[str, Any] = {"deliver_subject": target, "ack_policy": "none"}
    sends = ((target, True),)
    match generator.randrange(4):
        case 0:
            return Asked(f"{API}CONSUMER.CREATE.{stream}", _consumer(stream, config), sends=sends)
        case 1:
            config |= {"name": "D"}
            return Asked(f"{API}CONSUMER.CREATE.{stream}.D", _consumer(stream, config), sends=sends)
        case 2:
            config |= {"durable_name": "D"}
            return Asked(f"{API}CONSUMER.DURABLE.CREATE.{stream}.D", _consumer(stream, config), sends=sends)
        case _:
            return Asked(f"{API}CONSUMER.DURABLE.CREATE.{stream}.D", _consumer(stream, {"durable_name": "D"}))


def _consumer(stream: str, config: dict[str, Any]) -> bytes:
    return _json({"stream_name": stream, "config": config})


def snapshot(generator: random.Random, world: World) -> Asked:
    target = _target(generator, world)
    body = _json({"deliver_subject": target})
    return Asked(f"{API}STREAM.SNAPSHOT.{world.streams[0]}", body, sends=((target, True),))


def scan(generator: random.Random, world: World) -> Asked:
    stream, target = world.streams[0], _target(generator, world)
    needs = (f"STREAM.MSG.GET.{stream}",)
    match generator.randrange(3):
        case 0:
            return Asked(f"{API}STREAM.SCAN.PLAN.{stream}", needs=needs)
        case 1:
            return Asked(f"{API}STREAM.SCAN.FILES.{stream}", needs=needs)
        case _:
            body = _json({"deliver_subject": target})
            return Asked(f"{API}STREAM.SCAN.ROWS.{stream}", body, needs=needs, sends=((target, True),))


def why(generator: random.Random, world: World) -> Asked:
    stream = world.streams[0]
    if generator.random() < 0.5:
        return Asked(f"{API}STREAM.WHY.{stream}", needs=(f"STREAM.INFO.{stream}",))
    return Asked(f"{API}CONSUMER.WHY.{stream}.C", needs=(f"CONSUMER.INFO.{stream}.C",))


def plain(generator: random.Random, world: World) -> Asked:
    """Requests that nats-server knows, and that send nowhere: the right to the subject is all there is."""
    stream = generator.choice(world.streams)
    words = generator.choice(
        [
            *("INFO", "STREAM.NAMES", "STREAM.LIST", f"STREAM.INFO.{stream}", f"CONSUMER.NAMES.{stream}"),
            *(f"CONSUMER.LIST.{stream}", f"CONSUMER.INFO.{stream}.C", f"STREAM.PURGE.{stream}"),
            *(f"CONSUMER.DELETE.{stream}.C", f"STREAM.DELETE.{stream}"),
        ]
    )
    return Asked(API + words)


def of_2020(generator: random.Random, world: World) -> Asked:
    stream, target = generator.choice(world.streams), _target(generator, world)
    consumer = {
        "stream_name": stream,
        "config": {"delivery_subject": target, "durable_name": "D", "ack_policy": "none"},
    }
    ephemeral = {"stream_name": stream, "config": {"delivery_subject": target, "ack_policy": "none"}}
    old = {"name": world.new, "subjects": [f"{world.new.lower()}.x"], "storage": "memory"}
    template = {"name": world.new, "config": {"subjects": [f"{world.new.lower()}.*"]}, "max_streams": 1}
    at = f"$JS.STREAM.{stream}"
    choices: list[Callable[[], Asked]] = [
        lambda: Asked("$JS.ENABLED", needs=("INFO",)),
        lambda: Asked("$JS.INFO", needs=("INFO",)),
        lambda: Asked("$JS.STREAM.LIST", needs=("STREAM.NAMES",)),
        lambda: Asked(f"$JS.STREAM.{world.new}.CREATE", _json(old), needs=(f"STREAM.CREATE.{world.new}",)),
        lambda: Asked(f"{at}.INFO", needs=(f"STREAM.INFO.{stream}",)),
        lambda: Asked(f"{at}.DELETE", needs=(f"STREAM.DELETE.{stream}",)),
        lambda: Asked(f"{at}.PURGE", needs=(f"STREAM.PURGE.{stream}",)),
        lambda: Asked(f"{at}.MSG.BYSEQ", b"1", needs=(f"STREAM.MSG.GET.{stream}",)),
        lambda: Asked(f"{at}.MSG.DELETE", b"1", needs=(f"STREAM.MSG.DELETE.{stream}",)),
        lambda: Asked(f"{at}.CONSUMERS", needs=(f"CONSUMER.NAMES.{stream}",)),
        lambda: Asked(f"{at}.CONSUMER.C.INFO", needs=(f"CONSUMER.INFO.{stream}.C",)),
        lambda: Asked(f"{at}.CONSUMER.C.DELETE", needs=(f"CONSUMER.DELETE.{stream}.C",)),
        lambda: Asked(
            f"{at}.CONSUMER.D.CREATE",
            _json(consumer),
            needs=(f"CONSUMER.DURABLE.CREATE.{stream}.D",),
            sends=((target, True),),
        ),
        lambda: Asked(
            f"{at}.EPHEMERAL.CONSUMER.CREATE",
            _json(ephemeral),
            needs=(f"CONSUMER.CREATE.{stream}",),
            sends=((target, True),),
        ),
        lambda: Asked("$JS.TEMPLATE.LIST", needs=("STREAM.TEMPLATE.NAMES",)),
        lambda: Asked(
            f"$JS.TEMPLATE.{world.new}.CREATE",
            _json(template),
            needs=(f"STREAM.TEMPLATE.CREATE.{world.new}", "STREAM.CREATE.*"),
        ),
        lambda: Asked(
            f"$JS.TEMPLATE.{world.new}.DELETE", needs=(f"STREAM.TEMPLATE.DELETE.{world.new}", "STREAM.DELETE.*")
        ),
    ]
    return generator.choice(choices)()


def of_2019(generator: random.Random, world: World) -> Asked:
    stream, target = generator.choice(world.streams), _target(generator, world)
    old = {"name": world.new, "subjects": [f"{world.new.lower()}.x"], "storage": "memory"}
    config: dict[str, Any] = {"delivery_subject": target}
    choices: list[Callable[[], Asked]] = [
        lambda: Asked("$JS.MSGSETS", needs=("STREAM.NAMES",)),
        lambda: Asked("$JS.MSGSET.CREATE", _json(old), needs=(f"STREAM.CREATE.{world.new}",)),
        lambda: Asked("$JS.MSGSET.INFO", stream.encode(), needs=(f"STREAM.INFO.{stream}",)),
        lambda: Asked("$JS.MSGSET.DELETE", stream.encode(), needs=(f"STREAM.DELETE.{stream}",)),
        lambda: Asked("$JS.MSGSET.PURGE", stream.encode(), needs=(f"STREAM.PURGE.{stream}",)),
        lambda: Asked("$JS.MSGSET.MSG.DELETE", f"{stream} 1".encode(), needs=(f"STREAM.MSG.DELETE.{stream}",)),
        lambda: Asked("$JS.OBSERVABLES", stream.encode(), needs=(f"CONSUMER.NAMES.{stream}",)),
        lambda: Asked("$JS.OBSERVABLE.INFO", f"{stream} C".encode(), needs=(f"CONSUMER.INFO.{stream}.C",)),
        lambda: Asked("$JS.OBSERVABLE.DELETE", f"{stream} C".encode(), needs=(f"CONSUMER.DELETE.{stream}.C",)),
        lambda: Asked(
            "$JS.OBSERVABLE.CREATE",
            _json({"msg_set_name": stream, "config": config}),
            needs=(f"CONSUMER.CREATE.{stream}",),
            sends=((target, True),),
        ),
        lambda: Asked(
            "$JS.OBSERVABLE.CREATE",
            _json({"msg_set_name": stream, "config": {**config, "durable_name": "D"}}),
            needs=(f"CONSUMER.DURABLE.CREATE.{stream}.D",),
            sends=((target, True),),
        ),
    ]
    return generator.choice(choices)()


REQUESTS: tuple[Callable[[random.Random, World], Asked], ...] = (
    *(create_stream, update_stream, restore_stream, fork_stream, create_consumer, snapshot, scan, why, plain),
    *(of_2020, of_2019, create_consumer, of_2020),
)
