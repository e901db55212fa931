"""Clients that nobody knows: they connect, begin to say CONNECT, and never finish.

They come from several processes. Each has an address of its own (of 127.0.0.0/8), and so all ports of that address to
itself, and keeps to a pace, so that it is the server and not the client that has to work.
"""

from __future__ import annotations

import multiprocessing
import socket
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.synchronize import Barrier, Event
from typing import Self

HALF_CONNECT_BYTES = 3072
"""What a half-open client has sent: below the longest line a server takes."""

GREETING = b'CONNECT {"verbose":false,"name":"'
HALF_CONNECT = GREETING.ljust(HALF_CONNECT_BYTES, b"x")

# Closing resets the connection: tens of thousands of them must not wait for their end.
RESET_AT_CLOSE = struct.pack("ii", 1, 0)

CONNECT_S_MAX = 5.0


@dataclass(frozen=True)
class Attack:
    """What one process does: so many clients, spread over ports, so many per second."""

    source_host: str
    ports: list[int]
    clients: int
    per_second: float


Behaviour = Callable[[Attack, list[socket.socket], Event, Event], None]
"""Fills the list with clients until the first event is set, and sets the second when all have come."""


class Attackers:
    """The processes of one attack; they begin at once, and are gone when the block is left."""

    def __init__(self, kind: str, attacks: list[Attack]) -> None:
        context = multiprocessing.get_context("spawn")
        self._stop = context.Event()
        self._begin = context.Barrier(len(attacks) + 1)
        self._done = [context.Event() for _ in attacks]
        target = {"half-open": hold_half_open, "slow": send_slowly}[kind]
        self._processes = [
            context.Process(target=_attack, args=(target, attack, self._begin, self._stop, done), daemon=True)
            for attack, done in zip(attacks, self._done, strict=True)
        ]

    def __enter__(self) -> Self:
        for process in self._processes:
            process.start()
        self._begin.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for process in self._processes:
            process.join()

    @property
    def done(self) -> bool:
        """Tell whether all clients have come; slow ones are never done."""
        return all(done.is_set() for done in self._done)

    @property
    def failed(self) -> bool:
        return any(process.exitcode for process in self._processes)


def _attack(target: Behaviour, attack: Attack, begin: Barrier, stop: Event, done: Event) -> None:
    begin.wait()
    clients: list[socket.socket] = []
    try:
        target(attack, clients, stop, done)
        stop.wait()
    finally:
        for client in clients:
            client.close()


def hold_half_open(attack: Attack, clients: list[socket.socket], stop: Event, done: Event) -> None:
    """Open connections at a pace, send half a CONNECT on each, and keep them."""
    begun_at = time.perf_counter()
    for number in range(attack.clients):
        if stop.is_set():
            return
        client = opened(attack, number)
        send(client, HALF_CONNECT)
        clients.append(client)
        ahead_s = number / attack.per_second - (time.perf_counter() - begun_at)
        if ahead_s > 0:
            time.sleep(ahead_s)
    done.set()


def send_slowly(attack: Attack, clients: list[socket.socket], stop: Event, _: Event) -> None:
    """Send one byte per client and second, evenly spread; who is cut off comes again."""
    sent = [0] * attack.clients
    begun_at = time.perf_counter()
    step = 0
    while not stop.is_set():
        number = step % attack.clients
        if step < attack.clients:
            clients.append(opened(attack, number))
        elif is_cut_off(clients[number]):
            clients[number].close()
            clients[number] = opened(attack, number)
            sent[number] = 0
        send(clients[number], GREETING[sent[number] : sent[number] + 1] or b"x")
        sent[number] += 1
        step += 1
        ahead_s = step / attack.per_second - (time.perf_counter() - begun_at)
        if ahead_s > 0:
            time.sleep(ahead_s)


def opened(attack: Attack, number: int) -> socket.socket:
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_AT_CLOSE)
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    client.settimeout(CONNECT_S_MAX)
    client.bind((attack.source_host, 0))
    client.connect(("127.0.0.1", attack.ports[number % len(attack.ports)]))
    client.setblocking(False)
    return client


def send(client: socket.socket, data: bytes) -> None:
    try:
        client.send(data)
    except OSError:
        # It was cut off already.
        return


def is_cut_off(client: socket.socket) -> bool:
    try:
        return client.recv(4096) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True
