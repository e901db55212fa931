"""Plays a history of `consumer_histories` on one server, step by step, and tells what can be seen of it afterwards.

A `Side` is one server with the stream of one history. A step returns what its requests were answered; `seen` returns
the state of the stream and the numbers of its consumers. Both are compared after every step by `consumer_differences`.

What nats-server 2.15.1 does by race or by mistake is kept out of sight here, and nowhere else:

- A purge, a roll-up and a restart make nats-server forget which messages are to be delivered again at once (they wait
  for `ack_wait`), so such messages are fetched before (`_fetch_refused`).
- A subscription that ends in the middle of a pull leaves nats-server with numbers that differ from run to run, so the
  consumer is brought back to known ones: everything is acknowledged, and it is reset (`_converge`).
- In an interest stream, messages that are removed because of other filters stay in `num_ack_pending`, so what is under
  way is acknowledged before filters change (`_acknowledge_open`).
- The number of messages to come, in what a push consumer delivers, depends on how fast they were published; that of a
  consumer of `last_per_subject` counts one message of a subject or all, by what happened last; and after a roll-up that
  of any consumer may count what was rolled up.
- A start beyond the end of the stream is forgotten by a restart, and what lies before it is counted as to come; so no
  consumer begins later than with the next message.
- Where a consumer stands among messages that it does not take is told in one way or another after a purge, where limits
  remove messages, and of a push consumer; so a position is then the message that comes next (`_place`), and unknown
  (-1) once other filters are set. For the same reason no consumer is reset to its floor then.
- What is left of `last_per_subject` is lost when one of those messages is removed, so they are fetched before that.
- A purge of the messages of one filter among several makes the consumer pass over all there are, so there is none.
- A purge or roll-up of one subject moves the floor of a consumer past other messages that are open, so none is then.
- A roll-up in a full stream removes the oldest message before it looks whether there is room, so there is none.
- A killed nats-server may bring back messages that had been removed; so it is stopped where Jetlake is killed.
- A message that is deleted while it waits for the acknowledgement of a consumer with `ack_policy` `all` acknowledges
  all before it, or only in what nats-server writes down; so such a consumer has nothing open when messages are deleted.
- A purge that removes the message which a consumer of `last` begins with leaves it in the number of messages to come.
- A purge up to a sequence that an interest stream has given and did not store leaves it with a state that changes by
  itself, and brings messages back; so everything is purged then.
- Where limits have removed messages, a purge moves a consumer's floor in the stream and not always in deliveries.
- A message of a burst may be removed by a limit before a push consumer has sent it, or after that, on either server; so
  the next one is published when what may be sent was (`_wait_until_pushed`). Where the consumer had no room, Jetlake
  notices only after a moment that a limit has made some.
- A push consumer with as many open messages as it may have goes on after a purge only when there is a new message; so
  it is given room before (`_make_room`).
- A purge that keeps some messages leaves those it removes in the number of messages to come, if there are gaps between
  them: in an interest stream, or where limits have removed some.
- A consumer of `last_per_subject` that is given other filters does not count all that it has to deliver, and says that
  there is nothing; so its filters stay.
- A restart forgets which messages a consumer has passed over, and it delivers them if its filters change later; so it
  begins behind them then (`_converge`).
- An acknowledgement of a message that was given up counts, but for a consumer with `ack_policy` `all`; so no message of
  such a consumer is given up.
- A consumer that was asked by `+NXT` and had nothing has passed over everything there is, also for filters that it is
  given later; so its filters stay.
"""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from tests.compatibility.consumer_histories import ACK_WAIT_NS, CONSUMERS, PUSH, Step
from tests.compatibility.consumers import Consumer, Inbox, Numbers, Puller, numbers_of
from tests.compatibility.jetstream import API, Json, Message, start_jetstream_server
from tests.compatibility.server_process import ServerProcess
from tests.compatibility.wire import TIMEOUT_SECONDS

Answer: TypeAlias = Any

# A server that is killed has written everything that is older.
WRITTEN_SECONDS = 1.0

# A refused message that is to come again soon has come up for delivery after this time.
SOON_NS = 20_000_000
SOON_SECONDS = 0.25

# After this time a consumer has noticed that a limit has removed something it had open.
ROOM_SECONDS = 0.12

POLL_SECONDS = 0.002

LATER_NS = ACK_WAIT_NS

# How long a pull that does not wait may be silent; some states answer it with nothing.
SILENCE_SECONDS = 0.4

BATCH_MAX = 200

BODIES = {
    "-NAK later": b'-NAK {"delay": %d}' % LATER_NS,
    "-NAK soon": b'-NAK {"delay": %d}' % SOON_NS,
}


class Delivered(NamedTuple):
    """What an ack subject says; the number of messages to come is -1 where it depends on speed."""

    sequence: int
    deliveries: int
    consumer_sequence: int
    pending: int


def delivered(message: Message, counts_pending: bool) -> Delivered:
    words = message.reply.split(".")
    return Delivered(int(words[5]), int(words[4]), int(words[6]), int(words[8]) if counts_pending else -1)


class Server:
    """A server that can be started again with what it has stored: Jetlake after a kill, nats-server after a stop."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind = kind
        self.folder = folder
        self.starts = 0
        self.process = self._start()

    def _start(self) -> ServerProcess:
        self.starts += 1
        folder = self.folder / f"run{self.starts}"
        folder.mkdir(parents=True)
        return start_jetstream_server(self.kind, folder, self.folder / "store")

    def restart(self) -> None:
        self.process.signal(signal.SIGKILL if self.kind == "jetlake" else signal.SIGTERM)
        self.process.wait_for_exit()
        self.process = self._start()

    def stop(self) -> None:
        self.process.stop()


class Side:
    """One server and the stream of one history on it."""

    def __init__(self, server: Server, stream: str, patience: float) -> None:
        self.server = server
        self.stream = stream
        self.patience = patience
        self.js = Puller(server.process)
        self.deliveries: dict[str, list[Message]] = {name: [] for name in (*CONSUMERS, PUSH)}
        self.configs: dict[str, Json] = {}
        self.refused: set[str] = set()
        self.inbox: Inbox | None = None
        self.last_sequence = 0
        self.is_rolled_up = False
        self.is_interest = False
        self.is_limited = False
        self.is_purged = False
        self.was_purged_in_part = False
        self.tails: dict[int, str] = {}
        # Consumers whose position is told as the message that comes next, and those whose position is not compared.
        self.placed: set[str] = set()
        self.lost: set[str] = set()
        self.asked_next: set[str] = set()
        self.refiltered: set[str] = set()
        self.restarted: set[str] = set()

    def close(self) -> None:
        """Leave nothing behind."""
        self.js.api(f"STREAM.DELETE.{self.stream}")
        self.js.raw.close()

    def begin(self, config: Json) -> Answer:
        self.is_interest = config.get("retention") == "interest"
        self.is_limited = "max_msgs" in config or "max_msgs_per_subject" in config
        return self._answered(self.js.try_create(self.stream, **config))

    def play(self, step: Step) -> Answer:
        if step.arguments.get("name", PUSH) not in (*self.configs, PUSH) and step.kind != "create":
            return None
        play: Callable[..., Answer] = getattr(self, step.kind)
        return play(**step.arguments)

    # What can be seen

    def seen(self) -> Json:
        """The state of the stream, the numbers of its consumers, and what the push consumer has sent."""
        state = self.js.state(self.stream, {"deleted_details": True})
        self.last_sequence = state["last_seq"]
        first = state["first_seq"]
        stored = [
            number
            for number in range(first, state["last_seq"] + 1)
            if state["messages"] and number not in set(state.get("deleted") or [])
        ]
        # A stream that never had a message begins with 0 or with 1, and nats-server counts a gap in it.
        gaps = state.get("num_deleted", 0) if state["last_seq"] else 0
        seen: Json = {"state": (state["messages"], max(first, 1), state["last_seq"], gaps), "stored": stored}
        for name in self.configs:
            numbers = self.numbers(name)
            if isinstance(numbers, Numbers):
                numbers = self._comparable(name, numbers, stored)
            seen[name] = numbers
        if self.inbox is not None:
            received = [message for message in self.js.received_at(self.inbox) if not message.status]
            self.deliveries[PUSH] += received
        seen["pushed"] = [delivered(message, counts_pending=False) for message in self.deliveries[PUSH]]
        return seen

    def numbers(self, name: str) -> Numbers | str:
        answer = self.js.api(f"CONSUMER.INFO.{self.stream}.{name}")
        return "gone" if "error" in answer else numbers_of(answer)

    def _comparable(self, name: str, numbers: Numbers, stored: list[int]) -> Numbers:
        if not self._counts_pending(name):
            numbers = numbers._replace(pending=-1)
        if name == PUSH or self.is_limited or name in self.placed | self.lost:
            (delivered_count, at), (floor_count, floor) = numbers.delivered, numbers.ack_floor
            places = (delivered_count, self._place(name, at, stored)), (floor_count, self._place(name, floor, stored))
            numbers = numbers._replace(delivered=places[0], ack_floor=places[1])
        if self.is_limited and self.is_purged:
            numbers = numbers._replace(ack_floor=(-1, numbers.ack_floor[1]))
        return numbers

    def _place(self, name: str, position: int, stored: list[int]) -> int:
        """The first message behind a position that a consumer takes."""
        if name in self.lost:
            return -1
        config = self.configs[name]
        filters = config.get("filter_subjects") or [config.get("filter_subject") or f"{self.stream}.*"]
        tails = {subject.removeprefix(f"{self.stream}.") for subject in filters}
        takes = (each for each in stored if each > position and ("*" in tails or self.tails.get(each) in tails))
        return next(takes, self.last_sequence + 1)

    def _takes_everything(self, name: str) -> bool:
        config = self.configs[name]
        return not config.get("filter_subjects") and config.get("filter_subject", "") in ("", f"{self.stream}.*")

    def _counts_pending(self, name: str) -> bool:
        """Whether both servers say the same about what is to come."""
        policy = self.configs[name].get("deliver_policy")
        is_miscounted = policy == "last_per_subject" or (policy == "last" and self.is_purged)
        is_miscounted |= (self.is_interest or self.is_limited) and self.was_purged_in_part
        return not self.is_rolled_up and not is_miscounted

    def contents(self) -> list[tuple[int, str, str]]:
        """Everything that is stored, with subject and payload."""
        stored = self.seen()["stored"]
        messages = [self.js.get(self.stream, seq=sequence) for sequence in stored]
        return [(message["seq"], message["subject"], message.get("data", "")) for message in messages]

    # Messages

    def publish(self, tails: str) -> Answer:
        answers = []
        for tail in tails:
            answers.append(self._stored(tail))
            if self.is_limited:
                self._wait_until_pushed()
        return answers

    def roll_up(self, tail: str, what: str) -> Answer:
        if self.is_limited:
            return None
        self._prepare_removal(of_subject=what == "sub")
        self.is_rolled_up = True
        return self._stored(tail, {"Nats-Rollup": what})

    def _stored(self, tail: str, headers: dict[str, str] | None = None) -> Answer:
        payload = f"{tail}{self.last_sequence}".encode()
        answer = self.js.publish(f"{self.stream}.{tail}", payload, headers)
        if "error" in answer:
            return answer["error"]["err_code"]
        self.tails[answer["seq"]] = tail
        return answer["seq"]

    def delete_message(self, pick: int) -> Answer:
        self._fetch_lasts()
        self._acknowledge_whole()
        self.placed.update(self.configs)
        sequence = pick % (self.last_sequence + 2)
        return self._answered(self.js.api(f"STREAM.MSG.DELETE.{self.stream}", {"seq": sequence}))

    def purge(self, request: Json) -> Answer:
        self._prepare_removal(of_subject="filter" in request)
        self.is_purged = True
        request = dict(request)
        if "filter" in request:
            if any(config.get("filter_subjects") for config in self.configs.values()):
                return None
            request["filter"] = f"{self.stream}.{request['filter']}"
        if "seq" in request:
            request["seq"] = self._purged_up_to(request["seq"])
            if not request["seq"]:
                del request["seq"]
        self.was_purged_in_part |= "keep" in request
        answer = self.js.api(f"STREAM.PURGE.{self.stream}", request)
        return answer.get("purged", 0) if "error" not in answer else self._answered(answer)

    def _purged_up_to(self, pick: int) -> int:
        """A sequence to purge up to; 0 for all."""
        sequence = pick % (self.last_sequence + 3)
        is_beyond = self.is_interest and sequence > max(self.seen()["stored"], default=0)
        return 0 if is_beyond else sequence

    # Consumers

    def create(self, name: str, config: Json) -> Answer:
        if "opt_start_seq" in config:
            config = {**config, "opt_start_seq": min(config["opt_start_seq"], self.last_sequence + 1)}
        return self._define(name, "create", self._with_subjects(config))

    def update(self, name: str, changes: Json) -> Answer:
        if name not in self.configs:
            return None
        if "filter_subject" in changes:
            if name in self.asked_next or self.configs[name].get("deliver_policy") == "last_per_subject":
                return None
            if name in self.restarted:
                if name == PUSH or not self._may_be_reset(name):
                    return None
                self._converge(name)
                self.restarted.discard(name)
            self._acknowledge_open(name)
            if self.is_limited or name in self.placed:
                self.lost.add(name)
            if self.configs[name].get("deliver_policy") == "by_start_sequence":
                self.refiltered.add(name)
        return self._define(name, "update", {**self.configs[name], **self._with_subjects(changes)})

    def _define(self, name: str, action: str, config: Json) -> Answer:
        config = {"durable_name": name, "ack_wait": ACK_WAIT_NS, **config}
        if config["ack_policy"] == "none":
            config.pop("ack_wait")
        body = {"stream_name": self.stream, "config": config, "action": action}
        answer = self.js.api(f"CONSUMER.CREATE.{self.stream}.{name}", body)
        if "error" not in answer:
            self.configs[name] = config
        return self._answered(answer)

    def _with_subjects(self, config: Json) -> Json:
        """The same with whole subjects instead of tails."""
        config = dict(config)
        if config.get("filter_subject"):
            config["filter_subject"] = f"{self.stream}.{config['filter_subject']}"
        if config.get("filter_subjects"):
            config["filter_subjects"] = [f"{self.stream}.{tail}" for tail in config["filter_subjects"]]
        if config.get("deliver_subject"):
            config["deliver_subject"] = f"to.{self.stream}"
        return config

    def delete_consumer(self, name: str) -> Answer:
        self.configs.pop(name, None)
        self.deliveries[name].clear()
        self.refused.discard(name)
        self.placed.discard(name)
        self.lost.discard(name)
        self.asked_next.discard(name)
        self.refiltered.discard(name)
        self.restarted.discard(name)
        return self._answered(self.js.api(f"CONSUMER.DELETE.{self.stream}.{name}"))

    def reset(self, name: str, pick: int | None) -> Answer:
        body = {} if pick is None else {"seq": pick % (self.last_sequence + 2)}
        if not body.get("seq") and (not self._takes_everything(name) or self.is_limited or name in self.placed):
            return None
        self.refused.discard(name)
        answer = self.js.api(f"CONSUMER.RESET.{self.stream}.{name}", body)
        if "error" not in answer:
            self.placed.discard(name)
            self.lost.discard(name)
            if self.configs[name]["ack_policy"] == "all":
                # An acknowledgement from before the reset keeps nats-server from counting those that come later.
                self.deliveries[name].clear()
        return answer.get("reset_seq") or self._answered(answer)

    # Deliveries

    def fetch(self, name: str, count: int) -> Answer:
        """Pull what is there; the messages, and the status at the end if there was one."""
        consumer = Consumer(self.js, self.stream, name)
        inbox = consumer.request({"batch": count, "no_wait": True})
        messages: list[Message] = []
        status = ""
        while len(messages) < count and not status:
            try:
                message = self.js.next_at(inbox, SILENCE_SECONDS * self.patience)
            except AssertionError:
                status = "silence"
                break
            status = message.status
            if not status:
                messages.append(message)
        self.js.close_inbox(inbox)
        self.deliveries[name] += messages
        if len(messages) < count:
            self.refused.discard(name)
        return [delivered(message, self._counts_pending(name)) for message in messages], status

    def acknowledge(self, name: str, body: str, back: int) -> Answer:
        known = self.deliveries[name]
        if not known:
            return None
        message = known[-1 - back % len(known)]
        if body.startswith("-NAK"):
            config = self.configs[name]
            if config["ack_policy"] == "all" and config.get("max_deliver", 0) > 0:
                return None
            self.refused.add(name)
        if body == "+NXT":
            self.asked_next.add(name)
        self._answer_to(message, BODIES.get(body, body.encode()))
        if body == "-NAK soon":
            time.sleep(SOON_SECONDS * self.patience)
        return None

    def _answer_to(self, message: Message, body: bytes = b"+ACK") -> None:
        self.js.send(message.reply, body)
        self.js.flush()

    def listen(self, is_there: bool) -> Answer:
        if is_there and self.inbox is None:
            self.inbox = self.js.open_inbox(f"to.{self.stream}")
            self.js.flush()
        elif not is_there and self.inbox is not None:
            self.seen()
            self.js.close_inbox(self.inbox)
            self.inbox = None
        return None

    def leave_early(self, name: str, heard: int, then: str, pick: int) -> Answer:
        """End a subscription in the middle of what it is sent, do something, and see that all the rest comes."""
        config = self.configs.get(name)
        numbers = self.numbers(name)
        if config is None or not isinstance(numbers, Numbers) or "deliver_subject" in config:
            return None
        room = config.get("max_ack_pending", BATCH_MAX) - numbers.ack_pending
        counts_deliveries = config["ack_policy"] == "none" or config.get("max_deliver", 0) > 0
        if counts_deliveries or min(numbers.pending, room) <= heard:
            return None
        if config["ack_policy"] == "all" and then in ("delete", "purge"):
            return None
        if not self._may_be_reset(name):
            return None
        inbox = self.js.open_inbox()
        self.js.raw.send(f"UNSUB {inbox.subscription} {heard}\r\n".encode())
        body = json.dumps({"batch": BATCH_MAX, "expires": LATER_NS}).encode()
        self.js.send(f"{API}CONSUMER.MSG.NEXT.{self.stream}.{name}", body, reply=inbox.subject)
        messages = [self.js.next_at(inbox) for _ in range(heard)]
        consumer = Consumer(self.js, self.stream, name)
        consumer.wait_for(lambda numbers: numbers.waiting == 0)
        self.refused.add(name)
        if then == "delete":
            self.delete_message(pick)
        elif then == "purge":
            self._acknowledge_whole()
            self.placed.update(self.configs)
            self.is_purged = True
            sequence = self._purged_up_to(pick)
            self.js.api(f"STREAM.PURGE.{self.stream}", {"seq": sequence} if sequence else {})
            # What reached nobody comes again at once; on nats-server not after a purge, unless there is a reset.
            assert "error" not in self.js.api(f"CONSUMER.RESET.{self.stream}.{name}", {})
        elif then == "acknowledge":
            self._answer_to(messages[pick % heard])
        elif then == "restart":
            self.restart()
        self.deliveries[name] += messages
        self._converge(name)
        return None

    def _may_be_reset(self, name: str) -> bool:
        """Whether a consumer may be reset to any sequence."""
        return self.configs[name].get("deliver_policy", "all") in ("all", "by_start_sequence")

    def _converge(self, name: str) -> None:
        """Acknowledge everything there is for a consumer, and have it count anew from there."""
        for _ in range(2):
            self._acknowledge_open(name)
            while self.fetch(name, BATCH_MAX)[0]:
                self._acknowledge_open(name)
            next_sequence = self.js.state(self.stream)["last_seq"] + 1
            answer = self.js.api(f"CONSUMER.RESET.{self.stream}.{name}", {"seq": next_sequence})
            assert "error" not in answer, answer
        self.deliveries[name].clear()
        self.refused.discard(name)

    def _acknowledge_open(self, name: str) -> None:
        for message in self.deliveries[name]:
            self._answer_to(message)
        if self.configs[name]["ack_policy"] != "none":
            self._wait_until_acknowledged(name)

    def _wait_until_acknowledged(self, name: str) -> None:
        """Wait as long as the number of messages that are under way still falls."""
        deadline = time.monotonic() + TIMEOUT_SECONDS
        before = -1
        while time.monotonic() < deadline:
            numbers = self.numbers(name)
            if not isinstance(numbers, Numbers) or numbers.ack_pending in (0, before):
                return
            before = numbers.ack_pending
            time.sleep(0.02 * self.patience)

    def _is_full(self, numbers: Numbers) -> bool:
        """Whether the push consumer has as many open messages as it may have."""
        return numbers.ack_pending >= self.configs[PUSH].get("max_ack_pending", BATCH_MAX)

    def _wait_until_pushed(self) -> None:
        """Wait until the push consumer has sent what it may send now."""
        deadline = time.monotonic() + SOON_SECONDS * self.patience
        while self.inbox is not None and PUSH in self.configs and time.monotonic() < deadline:
            numbers = self.numbers(PUSH)
            if not isinstance(numbers, Numbers) or numbers.pending == 0:
                return
            if self._is_full(numbers) and time.monotonic() > deadline - (SOON_SECONDS - ROOM_SECONDS) * self.patience:
                return
            time.sleep(POLL_SECONDS)

    def _make_room(self) -> None:
        """Acknowledge what the push consumer has sent, if it may send no more."""
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while self.inbox is not None and PUSH in self.configs and time.monotonic() < deadline:
            self._wait_until_pushed()
            numbers = self.numbers(PUSH)
            if not isinstance(numbers, Numbers) or not self._is_full(numbers):
                return
            self.seen()
            self._acknowledge_open(PUSH)

    def _fetch_refused(self) -> None:
        """Have messages delivered that are to be delivered again at once."""
        for name in sorted(self.refused):
            if name in self.configs and name != PUSH:
                self.fetch(name, BATCH_MAX)
        self.refused.clear()

    def _acknowledge_whole(self) -> None:
        """Leave nothing open at consumers where one acknowledgement means all before it."""
        for name, config in self.configs.items():
            if config["ack_policy"] == "all":
                self._acknowledge_open(name)

    def _fetch_lasts(self) -> None:
        """Have the last messages of each subject delivered, where that is what a consumer begins with."""
        for name, config in self.configs.items():
            if config.get("deliver_policy") == "last_per_subject" and name != PUSH:
                self.fetch(name, BATCH_MAX)

    def _prepare_removal(self, of_subject: bool) -> None:
        self._fetch_refused()
        self._fetch_lasts()
        self._acknowledge_whole()
        self._make_room()
        self.placed.update(self.configs)
        if of_subject:
            for name in self.configs:
                self._acknowledge_open(name)

    # The server

    def restart(self) -> Answer:
        self._fetch_refused()
        if self.inbox is not None:
            self.listen(False)
        for name in self.refiltered:
            # After a restart, nats-server has forgotten what such a consumer passed over before its update.
            self._converge(name)
        self.refiltered.clear()
        time.sleep(WRITTEN_SECONDS * self.patience)
        self.js.raw.close()
        self.server.restart()
        self.js = Puller(self.server.process)
        self.restarted.update(self.configs)
        return None

    def _answered(self, answer: Json) -> Answer:
        return answer["error"]["err_code"] if "error" in answer else "done"
