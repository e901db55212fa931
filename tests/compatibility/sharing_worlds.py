"""Made-up accounts that share subjects, with users, permissions, subscriptions and publishes, for `sharing_oracle`.

Subjects are few and short, so that patterns meet often. Everything comes from one generator: the same seed makes the
same worlds.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

TOKENS = ("a", "b", "c", "d")

ACCOUNTS = ("ONE", "TWO", "THREE", "FOUR")

SUBSCRIPTIONS_OF_USER = 8

GROUPS = ("left", "right")

OPEN_REPLY = "reply.open"
"""A reply subject that other users hear, too."""

IMPORTED = 0.6
"""How many of the exports that an account may import it does."""

STOLEN = 0.01
"""How many of those that it may not import it tries to: then both servers must refuse to start."""


@dataclass
class Subscription:
    """One subscription, of a queue group or not."""

    subject: str
    sid: int
    queue: str = ""

    def line(self) -> str:
        return " ".join(part for part in (self.subject, self.queue, str(self.sid)) if part)


@dataclass
class User:
    """One user with its rights, as they stand in a configuration, and what it subscribes to."""

    name: str
    account: str
    permissions: str
    subscriptions: list[Subscription] = field(default_factory=list)

    def shown_sid(self, sid: str) -> str:
        """Return the sid, and the queue group behind it: which member gets a message is chance."""
        queue = next((each.queue for each in self.subscriptions if str(each.sid) == sid), "")
        return f"group:{queue}" if queue else sid


@dataclass
class Share:
    """An export, as it stands in a configuration."""

    kind: str
    subject: str
    text: str
    # Who may import it; empty = everybody.
    accounts: tuple[str, ...] = ()


class World:
    """One configuration and everything that happens in it."""

    def __init__(self, generator: random.Random) -> None:
        self._generator = generator
        self.users: list[User] = []
        self._exports: dict[str, list[Share]] = {name: [] for name in ACCOUNTS}
        self._imports: dict[str, list[str]] = {name: [] for name in ACCOUNTS}
        self._mappings: dict[str, list[str]] = {name: [] for name in ACCOUNTS}
        self._published = 0
        for position, name in enumerate(ACCOUNTS):
            for _ in range(generator.randrange(5)):
                self._exports[name].append(self._export())
            for exporter in ACCOUNTS[:position]:
                for share in self._exports[exporter]:
                    is_allowed = not share.accounts or name in share.accounts
                    if generator.random() < (IMPORTED if is_allowed else STOLEN):
                        self._imports[name].append(self._import(exporter, share))
            if generator.random() < 0.4:
                self._mappings[name].append(self._mapping())
            for number in range(1 + generator.randrange(3)):
                self.users.append(self._user(name, number))

    @property
    def subscription_count(self) -> int:
        return sum(len(user.subscriptions) for user in self.users)

    def configuration(self) -> str:
        accounts = []
        for name in ACCOUNTS:
            users = ", ".join(
                f"{{user: {user.name}, password: x {user.permissions}}}" for user in self.users if user.account == name
            )
            exports = ", ".join(share.text for share in self._exports[name])
            accounts.append(
                f"{name} {{ users: [{users}]\n  exports: [{exports}]\n  imports: [{', '.join(self._imports[name])}]\n"
                f"  mappings: {{ {', '.join(self._mappings[name])} }} }}"
            )
        return "accounts {\n" + "\n".join(accounts) + "\n}\n"

    def publishes(self, count: int) -> list[tuple[int, bytes]]:
        """Return what users publish next, each with a payload of its own."""
        batch = []
        for _ in range(count):
            number = self._generator.randrange(len(self.users))
            subject = self._literal()
            reply = self._generator.choice(["", "", f"_INBOX.{self.users[number].name}", OPEN_REPLY])
            self._published += 1
            payload = f"m{self._published}"
            words = f"{subject} {reply}".strip()
            batch.append((number, f"PUB {words} {len(payload)}\r\n{payload}\r\n".encode()))
        return batch

    def without_groups(self, heard: Counter[tuple[str, ...]]) -> Counter[tuple[str, ...]]:
        return Counter({entry: count for entry, count in heard.items() if not _is_of_group(entry)})

    def by_group(self, heard: list[Counter[tuple[str, ...]]]) -> Counter[tuple[str, ...]]:
        """Return how often each message came to a queue group, whoever of it got it."""
        found: Counter[tuple[str, ...]] = Counter()
        for each in heard:
            for entry, count in each.items():
                if _is_of_group(entry):
                    found[entry[1], entry[4]] += count
        return found

    def _export(self) -> Share:
        kind = self._generator.choice(["stream", "service"])
        subject = self._pattern() if kind == "stream" else self._beginning_literally(self._pattern())
        chosen = tuple(self._generator.sample(ACCOUNTS, 2)) if self._generator.random() < 0.25 else ()
        accounts = f", accounts: [{', '.join(chosen)}]" if chosen else ""
        responses = self._generator.choice(["", "", ", response_type: stream"]) if kind == "service" else ""
        return Share(kind, subject, f'{{{kind}: "{subject}"{accounts}{responses}}}', chosen)

    def _import(self, exporter: str, share: Share) -> str:
        subject = self._narrowed(share.subject)
        source = f'{share.kind}: {{account: {exporter}, subject: "{subject}"}}'
        further = [""]
        if share.kind == "stream":
            further.append(f", prefix: {self._generator.choice(TOKENS)}")
        else:
            further.append(", share: true")
        renamed = self._renamed(subject)
        further.append(f', to: "{renamed if share.kind == "stream" else self._beginning_literally(renamed)}"')
        return f"{{{source}{self._generator.choice(further)}}}"

    def _renamed(self, subject: str) -> str:
        """Return other subjects with the same wildcards, in another order at times."""
        parts = [part for part in subject.split(".") if part != ">"]
        stars = parts.count("*")
        numbers = self._generator.sample(range(1, stars + 1), stars)
        renamed = [f"${numbers.pop()}" if part == "*" else self._generator.choice(TOKENS) for part in parts]
        if stars == 1 and self._generator.random() < 0.5:
            renamed = ["*" if part.startswith("$") else part for part in renamed]
        self._generator.shuffle(renamed)
        if subject.endswith(">"):
            renamed.append(">")
        return ".".join(renamed)

    def _narrowed(self, subject: str) -> str:
        if self._generator.random() < 0.6:
            return subject
        return ".".join(
            self._generator.choice(TOKENS) if part in "*>" and self._generator.random() < 0.5 else part
            for part in subject.split(".")
        )

    def _beginning_literally(self, pattern: str) -> str:
        """Return a pattern that no reply matches: nats-server garbles answers that are requests themselves."""
        return f"{self._generator.choice(TOKENS)}.{pattern}" if pattern[0] in "*>$" else pattern

    def _mapping(self) -> str:
        source = self._pattern()
        parts = source.split(".")
        stars = parts.count("*")
        target = [self._generator.choice(TOKENS), *(f"${number}" for number in range(1, stars + 1))]
        self._generator.shuffle(target)
        if source.endswith(">"):
            target.append(">")
        return f'"{source}": "{".".join(target)}"'

    def _user(self, account: str, number: int) -> User:
        user = User(f"{account.lower()}{number}", account, self._permissions())
        user.subscriptions.append(Subscription(f"_INBOX.{user.name}", 1))
        if self._generator.random() < 0.5:
            user.subscriptions.append(Subscription(OPEN_REPLY, 2))
        for sid in range(3, SUBSCRIPTIONS_OF_USER + 1):
            queue = self._generator.choice(GROUPS) if self._generator.random() < 0.2 else ""
            user.subscriptions.append(Subscription(self._pattern(), sid, queue))
        return user

    def _permissions(self) -> str:
        if self._generator.random() < 0.5:
            return ""
        publish = self._lists(["_INBOX.>", "_R_.>"], self._pattern)
        # nats-server allows `d.>` to those who may subscribe to `*.*`.
        subscribe = self._lists(["_INBOX.>"], self._pattern_without_stars)
        # Without a maximum: on nats-server each further delivery of a reply subject uses up an answer.
        responses = self._generator.choice(["", ', allow_responses: {max: -1, expires: "1h"}'])
        return f", permissions: {{ publish: {publish}, subscribe: {subscribe}{responses} }}"

    def _lists(self, always: list[str], pattern: Callable[[], str]) -> str:
        allowed = [*always, *(pattern() for _ in range(1 + self._generator.randrange(3)))]
        denied = [pattern() for _ in range(self._generator.randrange(3))]
        parts = []
        if self._generator.random() < 0.7:
            parts.append("allow: [{}]".format(", ".join(f'"{each}"' for each in allowed)))
        if denied:
            parts.append("deny: [{}]".format(", ".join(f'"{each}"' for each in denied)))
        return "{ " + ", ".join(parts or ['allow: ">"']) + " }"

    def _pattern(self) -> str:
        parts = [self._generator.choice(TOKENS) for _ in range(1 + self._generator.randrange(3))]
        parts = ["*" if self._generator.random() < 0.25 else part for part in parts]
        if self._generator.random() < 0.2:
            parts[-1] = ">"
        return ".".join(parts)

    def _pattern_without_stars(self) -> str:
        return self._pattern().replace("*", self._generator.choice(TOKENS))

    def _literal(self) -> str:
        return ".".join(self._generator.choice(TOKENS) for _ in range(1 + self._generator.randrange(3)))


def _is_of_group(entry: tuple[str, ...]) -> bool:
    return len(entry) == 5 and entry[1].startswith("group:")
