"""Random frames against a model of RFC 6455: what of them is obeyed and answered, and where the connection ends."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest

from tests.compatibility.server_process import ServerProcess
from tests.compatibility.websocket_servers import websocket_config
from tests.compatibility.websocket_wire import (
    BINARY,
    CLOSE,
    COMPRESSED_BIT,
    CONTINUATION,
    FINAL_BIT,
    PING,
    PONG,
    RSV2_BIT,
    TEXT,
    WebSocketClient,
    close_payload,
    compressed,
    frame,
)

SEEDS = range(60)

LINE = b"PING\r\n"

MISTAKES_PERCENT = 4
"""Of a hundred frames; so about half of the histories end by themselves."""


@dataclass
class History:
    """What is sent, and what a server makes of it."""

    sent: list[bytes] = field(default_factory=list)
    # Bytes of the session that are complete.
    obeyed: bytes = b""
    pongs: list[bytes] = field(default_factory=list)
    is_violation: bool = False


def make_history(seed: int) -> History:
    """Cut many PINGs into messages and fragments, with control frames between them and now and then a mistake."""
    chance = random.Random(seed)
    history = History()
    lines = LINE * 200
    position = 0
    while position < len(lines) and not history.is_violation:
        size = chance.choice([0, 1, 5, 7, 60, 130, 300])
        piece = lines[position : position + size]
        position += size
        is_compressed = chance.random() < 0.4
        data = compressed(piece) if is_compressed else piece
        fragments = _cut(chance, data)
        for index, fragment in enumerate(fragments):
            if chance.randrange(100) < MISTAKES_PERCENT:
                history.sent.append(_mistake(chance, inside=index > 0))
                history.is_violation = True
                break
            if chance.random() < 0.2:
                payload = chance.randbytes(chance.choice([0, 4, 125]))
                history.sent.append(frame(PING, payload))
                history.pongs.append(payload)
            if chance.random() < 0.1:
                history.sent.append(frame(PONG, b"unasked"))
            bits = FINAL_BIT if index == len(fragments) - 1 else 0
            if index == 0 and is_compressed:
                bits |= COMPRESSED_BIT
            opcode = CONTINUATION if index else chance.choice([TEXT, BINARY])
            history.sent.append(frame(opcode, fragment, bits=bits))
            if not is_compressed:
                history.obeyed += fragment
            elif index == len(fragments) - 1:
                history.obeyed += piece
    if not history.is_violation:
        history.sent.append(frame(CLOSE, close_payload(1000, "done")))
    return history


def _cut(chance: random.Random, data: bytes) -> list[bytes]:
    """Cut a message into fragments, some of them empty."""
    cuts = sorted(chance.randrange(len(data) + 1) for _ in range(chance.choice([0, 0, 1, 3])))
    return [data[start:end] for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]


def _mistake(chance: random.Random, *, inside: bool) -> bytes:
    """Return a frame that is never allowed here."""
    return chance.choice(
        [
            frame(BINARY, LINE, masked=False),
            frame(BINARY if inside else CONTINUATION, LINE),
            frame(BINARY, LINE, bits=FINAL_BIT | RSV2_BIT),
            frame(chance.choice([3, 4, 5, 6, 7, 11, 12, 13, 14, 15])),
            frame(PING, b"x", bits=0),
            frame(PING, b"x" * 126),
            frame(PING, b"x", bits=FINAL_BIT | COMPRESSED_BIT),
            frame(CLOSE, b"x"),
            frame(CLOSE, close_payload(chance.choice([0, 1004, 1005, 1006, 1015, 2000, 5000]))),
            frame(BINARY, length_bytes=9, length=1 << 63),
        ]
    )


@pytest.fixture
def server(start_once) -> ServerProcess:
    return start_once(websocket_config("compress: true"))


@pytest.mark.parametrize("seed", SEEDS)
def test_server_obeys_what_the_model_obeys(server: ServerProcess, seed: int) -> None:
    history = make_history(seed)
    packets = random.Random(-seed)
    with WebSocketClient(server, compress=True) as client:
        client.connect()
        whole = b"".join(history.sent)
        while whole:
            size = packets.choice([1, 2, 3, 50, 1_000, len(whole)])
            client.send_bytes(whole[:size])
            whole = whole[size:]

        received, close = client.read_close()

    answers = [each.payload for each in client.control if each.opcode == PONG]
    expected = b"PONG\r\n" * history.obeyed.count(LINE)
    if not history.is_violation:
        assert (received, answers, close) == (expected, history.pongs, (1000, "done"))
    elif server.kind == "nats-server":
        # It closes without having sent what it had to say.
        assert expected.startswith(received)
        assert history.pongs[: len(answers)] == answers
    else:
        assert (received, answers) == (expected, history.pongs)
        assert close is not None
        assert close[0] == 1002
