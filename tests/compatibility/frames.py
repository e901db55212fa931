"""Cuts the bytes a NATS server sends into protocol frames, without looking further into them."""

from __future__ import annotations


def split_frame(buffer: bytes) -> tuple[bytes, bytes] | None:
    """Return the first frame of `buffer` and the rest, or None while the frame is incomplete.

    A frame is one line, or for MSG and HMSG the line with the payload and its CRLF.
    """
    line_end = buffer.find(b"\r\n")
    if line_end < 0:
        return None
    frame_end = line_end + 2
    if buffer.startswith((b"MSG ", b"HMSG ")):
        frame_end += int(buffer[:line_end].rsplit(b" ", 1)[1]) + 2
    if len(buffer) < frame_end:
        return None
    return buffer[:frame_end], buffer[frame_end:]


def split_frames(buffer: bytes) -> list[bytes]:
    """Return every frame of `buffer`; an incomplete tail becomes the last element as it is."""
    frames = []
    while buffer:
        cut = split_frame(buffer)
        if cut is None:
            frames.append(buffer)
            break
        frame, buffer = cut
        frames.append(frame)
    return frames
