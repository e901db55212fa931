"""Plays sessions made by chance in which every number that a client may send is small or as large as can be.

An engine that adds such a number to a time or a counter stops, since its arithmetic is checked. What a session must
show: the server answers to the end, and its consumers count what there is.

`python -m tests.compatibility.extreme_numbers --seeds 2000` makes a long run of it.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.compatibility.consumers import Inbox, Puller
from tests.compatibility.jetstream import API, Json, encode_body, start_jetstream_server
from tests.compatibility.server_process import ServerProcess

STREAM, CONSUMER, DELIVER_SUBJECT = "X", "C", "to"
STEP_COUNT = 80
PUBLISHED_MAX = 1_000_000

SMALL = range(12)
SIGNED = (2**31, 2**32, 2**53, 2**62, 2**63 - 2, 2**63 - 1)
UNSIGNED = (*SIGNED, 2**63, 2**64 - 2, 2**64 - 1)
NEGATIVE = (-1, -(2**31), -(2**62), -(2**63))
TIMES = ("0001-01-01T00:00:00Z", "1677-09-21T00:12:43Z", "2262-04-11T23:47:16Z", "9999-12-31T23:59:59Z")
DURATIONS = ("1ns", "2562047h47m16.854775807s", "-1s", "1", "9223372036854775807", "never", "0")

ACK_BODIES = ("+ACK", "-NAK", "+TERM", "+WPI", "+NXT", "-NAK 1ns", "-NAK 2562047h47m16.854775807s")


class Session:
    """One stream, one consumer, and what a client sends them."""

    def __init__(self, server: ServerProcess, seed: int) -> None:
        self.js = Puller(server)
        self.random = random.Random(seed)
        self.inbox: Inbox | None = None

    def play(self) -> None:
        """Do everything, and leave nothing behind."""
        self._answered("STREAM.CREATE", self._stream_config())
        self._define("create")
        self.inbox = self.js.open_inbox(DELIVER_SUBJECT) if self.random.random() < 0.3 else self.js.open_inbox()
        steps = (self._publish, self._pull, self._acknowledge, self._read, self._change, self._remove)
        for _ in range(STEP_COUNT):
            self.random.choices(steps, (5, 4, 6, 1, 1, 1))[0]()
        self.js.flush()
        self._check()
        self.js.api(f"STREAM.DELETE.{STREAM}")
        self.js.raw.close()

    def _number(self, *others: int) -> int:
        """A number: mostly a small one."""
        return self.random.choice(SMALL) if self.random.random() < 0.6 else self.random.choice((*UNSIGNED, *others))

    def _signed(self) -> int:
        return self.random.choice((*SMALL, *SIGNED, *NEGATIVE))

    def _some(self, **values: Any) -> Json:
        """Some of these."""
        return {name: value for name, value in values.items() if self.random.random() < 0.3}

    def _answered(self, endpoint: str, body: Json) -> Json:
        answer: Json = self.js.api(f"{endpoint}.{STREAM}", body)
        return answer

    def _stream_config(self) -> Json:
        config = {
            "name": STREAM,
            "subjects": [f"{STREAM}.>"],
            "retention": self.random.choice(("limits", "limits", "interest", "workqueue")),
            "storage": self.random.choice(("file", "memory")),
            "allow_msg_ttl": True,
            "allow_direct": True,
        }
        limits = self._some(
            max_msgs=self.random.choice(SIGNED),
            max_age=self.random.choice(SIGNED),
            duplicate_window=self.random.choice(SIGNED),
            subject_delete_marker_ttl=self.random.choice(SIGNED),
            max_msgs_per_subject=self.random.choice((1, 2, *SIGNED)),
        )
        return {**config, **limits}

    def _define(self, action: str) -> None:
        config: Json = {"durable_name": CONSUMER, "ack_policy": self.random.choice(("all", "explicit", "explicit"))}
        config |= self._some(
            ack_wait=self.random.choice(SIGNED),
            backoff=sorted(self.random.choices((1, 1_000_000, *SIGNED), k=2)),
            max_deliver=self.random.choice((3, *SIGNED)),
            max_ack_pending=self.random.choice((1, 3, *SIGNED)),
            inactive_threshold=self.random.choice((10**9, *SIGNED)),
            sample_freq="100",
            replay_policy="original",
            pause_until=self.random.choice(TIMES),
            filter_subject=self.random.choice((f"{STREAM}.a", f"{STREAM}.*")),
        )
        if self.random.random() < 0.3:
            config["deliver_subject"] = DELIVER_SUBJECT
            config |= self._some(
                flow_control=True, idle_heartbeat=self.random.choice((10**9, *SIGNED)), rate_limit_bps=self._number()
            )
        else:
            config |= self._some(
                max_waiting=self.random.choice((1, *SIGNED)),
                max_batch=self.random.choice((2, *SIGNED)),
                max_expires=self.random.choice(SIGNED),
                max_bytes=self.random.choice((2000, 2**31 - 1)),
            )
        start = self.random.choice(("all", "all", "by_start_sequence", "by_start_time", "last_per_subject"))
        config["deliver_policy"] = start
        if start == "by_start_sequence":
            config["opt_start_seq"] = self._number()
        elif start == "by_start_time":
            config["opt_start_time"] = self.random.choice(TIMES)
        body = {"stream_name": STREAM, "config": config, "action": action}
        self.js.api(f"CONSUMER.CREATE.{STREAM}.{CONSUMER}", body)

    def _publish(self) -> None:
        headers = self._some(**{"Nats-TTL": self.random.choice(DURATIONS), "Nats-Msg-Id": str(self._number())})
        headers |= self._some(
            **{
                "Nats-Expected-Last-Sequence": str(self._number()),
                "Nats-Expected-Last-Subject-Sequence": str(self._number()),
            }
        )
        headers = headers if self.random.random() < 0.3 else {}
        self.js.send(f"{STREAM}.{self.random.choice('abc')}", b"x", headers or None)

    def _pull(self) -> None:
        body = {"batch": self._number(*NEGATIVE), "no_wait": self.random.random() < 0.4}
        body |= self._some(expires=self._signed(), idle_heartbeat=self._signed(), max_bytes=self._signed())
        body |= self._some(min_pending=self._signed(), min_ack_pending=self._signed())
        assert self.inbox is not None
        self.js.send(f"{API}CONSUMER.MSG.NEXT.{STREAM}.{CONSUMER}", encode_body(body), reply=self.inbox.subject)

    def _acknowledge(self) -> None:
        # Mostly of a message that there may be.
        sequence = self.random.choice(SMALL) if self.random.random() < 0.9 else self._number()
        numbers = (self._number(), sequence, self._number(), self._number(), self._number())
        body = self.random.choice(ACK_BODIES)
        if self.random.random() < 0.3:
            body = f'-NAK {{"delay":{self._signed()}}}'
        elif self.random.random() < 0.1:
            body = f'+NXT {{"batch":{self._number()},"expires":{self._signed()}}}'
        subject = ".".join(("$JS.ACK", STREAM, CONSUMER, *(str(number) for number in numbers)))
        assert self.inbox is not None
        self.js.send(subject, body.encode(), reply=self.random.choice(("", self.inbox.subject)))

    def _read(self) -> None:
        self._answered("STREAM.MSG.GET", self._some(seq=self._number(), next_by_subj=f"{STREAM}.a"))
        batch = self._some(seq=self._number(), batch=self._number(), max_bytes=self._signed(), up_to_seq=self._number())
        assert self.inbox is not None
        self.js.send(f"{API}DIRECT.GET.{STREAM}", encode_body({"seq": 1, **batch}), reply=self.inbox.subject)

    def _change(self) -> None:
        if "error" in self.js.api(f"CONSUMER.INFO.{STREAM}.{CONSUMER}"):
            self._define("create")
        elif self.random.random() < 0.5:
            self.js.api(f"CONSUMER.RESET.{STREAM}.{CONSUMER}", {"seq": self._number()})
        elif self.random.random() < 0.5:
            self._define("update")
        else:
            self.js.api(f"CONSUMER.PAUSE.{STREAM}.{CONSUMER}", {"pause_until": self.random.choice(TIMES)})

    def _remove(self) -> None:
        if self.random.random() < 0.5:
            self._answered("STREAM.MSG.DELETE", {"seq": self._number()})
        else:
            # Behind the last message everything would have a sequence that only few numbers are left above.
            some = {"keep": self._number()} if self.random.random() < 0.5 else {"seq": self.random.choice(SMALL)}
            self._answered("STREAM.PURGE", some)

    def _check(self) -> None:
        answer = self.js.api(f"CONSUMER.INFO.{STREAM}.{CONSUMER}")
        if "error" in answer:
            return
        assert answer["ack_floor"]["consumer_seq"] <= answer["delivered"]["consumer_seq"], answer
        assert answer["num_pending"] <= PUBLISHED_MAX, answer
        assert answer["num_ack_pending"] <= PUBLISHED_MAX, answer
        assert answer["num_redelivered"] <= PUBLISHED_MAX, answer


def play(server: ServerProcess, seed: int) -> None:
    """Play one session. Raises `AssertionError` with the end of the server's log."""
    try:
        Session(server, seed).play()
    except (AssertionError, OSError) as error:
        panic = server.log().partition("panicked")[2]
        raise AssertionError(f"seed {seed}: {error}\n{panic[:500] or server.log()[-500:]}") from error


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=100, help="number of sessions (default: 100)")
    parser.add_argument("--start", type=int, default=0, help="first seed (default: 0)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        server = start_jetstream_server("jetlake", Path(folder), Path(folder) / "store")
        try:
            for seed in range(options.start, options.start + options.seeds):
                play(server, seed)
        finally:
            server.stop()
    print(f"{options.seeds} sessions, from seed {options.start}: the server answers")
    return 0


if __name__ == "__main__":
    sys.exit(main())
