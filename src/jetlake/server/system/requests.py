"""Which request is about what, and the body of its reply.

A subject is taken apart once, into a `Question`; which account may ask what is decided there. Bodies are those of the
monitoring pages.

Invariant: a question of an account other than the system account is about that account, whatever the request says.
"""

from typing import Literal

import msgspec

from jetlake.monitoring import bodies
from jetlake.monitoring.accstatz import AccstatzOptions
from jetlake.monitoring.accstatz import build as build_account_statistics
from jetlake.monitoring.readings import MonitoredServer
from jetlake.server.system.payloads import read_options
from jetlake.server.system.registration import (
    COMMANDS,
    OWN_CONNECTIONS,
    OWN_STATISTICS,
    PING,
    SUBSCRIBERS,
    USER_INFORMATION,
)
from jetlake.server.system.replies import Profile
from jetlake.shared.engine_reports import SubscriptionQuery
from jetlake.shared.subjects import is_literal, overlap

About = Literal["server", "account", "all accounts", "user", "subscribers", "command"]


class Question(msgspec.Struct, frozen=True):
    """What is asked: about what, which body or command, and about which account."""

    about: About
    word: str = ""
    account: str = ""


def read_question(subject: str, account: str, *, is_system: bool) -> Question | None:
    """Return what a message on this subject from this account asks; None = nothing that is answered."""
    if subject == USER_INFORMATION:
        return Question("user")
    if not is_system:
        return _own_question(subject, account)
    if subject == PING:
        return Question("server", "STATSZ")
    if subject == SUBSCRIBERS:
        return Question("subscribers")
    if subject == OWN_STATISTICS:
        return Question("all accounts", "STATZ")
    tokens = subject.split(".")
    if len(tokens) < 5:
        return None
    # Names of accounts may have dots in a configuration file; then no subject could name them, and none does.
    kind, name, word = tokens[2], ".".join(tokens[3:-1]), tokens[-1]
    if kind == "ACCOUNT":
        return Question("account", word, name)
    return Question("command" if word in COMMANDS else "server", word)


def _own_question(subject: str, account: str) -> Question | None:
    if subject in OWN_CONNECTIONS:
        return Question("account", "CONNZ", account)
    return Question("account", "STATZ", account) if subject == OWN_STATISTICS else None


def build_data(question: Question, source: MonitoredServer, payload: bytes) -> bytes:
    """Return the JSON of the body. Raises `PageError`, `UnreadableOptionsError` for what cannot be read."""
    if question.about == "account":
        return bodies.answer_account(question.word, question.account, source, payload)
    if question.about == "all accounts":
        return msgspec.json.encode(build_account_statistics(source, read_options(payload, AccstatzOptions)))
    if question.word == "PROFILEZ":
        return msgspec.json.encode(Profile())
    return bodies.answer(question.word, source, payload)


def count_subscribers(source: MonitoredServer, account: str, payload: bytes) -> int:
    """Return how many subscriptions of clients meet the subject in the request, of one queue if it names one."""
    words = payload.decode(errors="replace").split()
    if not words:
        return 0
    subject, queue = words[0], words[1] if len(words) > 1 else None
    literal = is_literal(subject)
    query = SubscriptionQuery(account=account, subject=subject if literal else "")
    return sum(
        1
        for each in source.subscriptions(query).subscriptions
        if each.connection_id != 0
        and (literal or overlap(subject, each.subject))
        and (queue is None or each.queue == queue)
    )
