"""What nats.js says about its work over WebSocket, in Node and in a browser, and the server that it works with."""

from __future__ import annotations

import functools
import socket
from collections.abc import Callable
from pathlib import Path

from tests.compatibility.server_process import ServerProcess

EXPECTED_LINES = [
    "message web.words.one ONE",
    "message web.words.two TWO",
    "message web.words.three THREE",
    "headers labelled green",
    "request desserts",
    "no responders true",
    "large true 900000 true",
    "stream 20 value 1 value 20",
    "ready to reconnect",
    "reconnect hello again",
]


def restartable(
    start_server: Callable[..., ServerProcess], folder: Path, keys: str = ""
) -> tuple[Callable[..., ServerProcess], str]:
    """Return what starts a server with streams, on the same WebSocket port each time, and the URL of that port."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    config = f'websocket {{ listen: "127.0.0.1:{port}", no_tls: true, {keys} }}'
    return functools.partial(start_server, ["-js", "-sd", str(folder / "store")], config), f"ws://127.0.0.1:{port}"
