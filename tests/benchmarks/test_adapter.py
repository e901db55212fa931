"""The benchmark of the adapter sends what nodes send."""

from benchmarks.adapter import PIECE_MESSAGES, TARGET, frames
from jetlake.choria.envelopes import parse
from jetlake.choria.registration import content_of


def test_every_frame_is_a_registration_of_its_own():
    pieces = frames(PIECE_MESSAGES + 1, 100)

    assert len(pieces) == 2
    payloads = [
        frame.partition(b"\r\n")[2].removesuffix(b"\r\n") for frame in pieces[0].split(b"PUB " + TARGET.encode())[1:]
    ]
    received = [parse(payload, "request") for payload in payloads]
    assert len({each.request_id for each in received}) == PIECE_MESSAGES
    assert len(content_of(received[0].data)) == 100
