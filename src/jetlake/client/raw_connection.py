"""One blocking connection to a server: a socket, TLS, CONNECT, requests, and bytes for the engine's bulk part.

The engine turns bytes into Arrow and back and knows no sockets; nats-py knows sockets but handles each message in
Python. This is the piece between: it connects with everything a user may have set up, answers small requests itself,
and passes on whatever else the socket receives.

```python
with RawConnection(Settings(url="nats://127.0.0.1:4222")) as connection:
    answer = connection.request("$JS.API.INFO", b"")
```

Invariant: bytes that were read and not yet parsed are in `_buffer`; `take` hands them over exactly once, and only a
connection whose buffer was taken may be read with `receive`.
"""

import json
import secrets
import socket
import ssl
import time
from types import TracebackType
from typing import Any, Self
from urllib.parse import unquote, urlsplit

import msgspec

from jetlake.client.raw_credentials import ClientCredentials
from jetlake.errors import ClientError, ConfigurationError, reason_of

__all__ = ["ConnectionSettings", "RawConnection", "RawMessage"]

DEFAULT_PORT = 4222

CONNECT_S_MAX = 10.0
"""To reach a server, its TLS and its word on the credentials included."""

ANSWER_S_MAX = 30.0
"""A server with a slow disk may take a while; one that does not know a request reports no responders."""

RECEIVE_BYTES_MAX = 512 * 1024
"""What one read takes from the socket: some hundred messages, and far below a batch of rows."""

LINE_BYTES_MAX = 64 * 1024
"""A protocol line that does not end within this many bytes does not come from a NATS server."""

SOCKET_BUFFER_BYTES = 4 * 1024 * 1024
"""Asked of the system for what arrives while the last bytes are made into rows."""

NO_RESPONDERS = "503"


class ConnectionSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Where to connect and how. `url` may be several addresses with commas between; the first that answers is taken."""

    url: str
    name: str = "jetlake"
    credentials: ClientCredentials = ClientCredentials()
    tls_ca: str = ""
    tls_certificate: str = ""
    tls_key: str = ""
    # The handshake comes before the server's INFO.
    tls_first: bool = False
    inbox_prefix: str = "_INBOX"


class RawMessage(msgspec.Struct, frozen=True):
    """A message as it came; `headers` is the whole block, empty without one."""

    subject: str
    reply: str
    headers: bytes
    data: bytes

    @property
    def status(self) -> str:
        """The number after `NATS/1.0`; empty on an ordinary message."""
        return self.headers.split(b"\r\n", 1)[0].removeprefix(b"NATS/1.0").strip().split(b" ")[0].decode()

    def json(self) -> dict[str, Any]:
        try:
            answer = json.loads(self.data)
        except ValueError as error:
            raise ClientError(f"the answer on {self.subject} is not JSON: {self.data[:100]!r}") from error
        return answer if isinstance(answer, dict) else {}


class RawConnection:
    """One connection, for one thread. Every method raises `ClientError`."""

    def __init__(self, settings: ConnectionSettings) -> None:
        self._settings = settings
        self._buffer = bytearray()
        self._requests = 0
        self._subscriptions = 1
        self._inbox = f"{settings.inbox_prefix}.{secrets.token_hex(11)}"
        self.info: dict[str, Any] = {}
        self.url = ""
        # Nothing more comes over it; another one may do.
        self.broken = False
        self._socket = self._connect()
        try:
            self.send(f"SUB {self._inbox}.* 1\r\n".encode())
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._socket.close()

    @property
    def payload_bytes_max(self) -> int:
        """The largest payload this server takes."""
        return int(self.info.get("max_payload", 1024 * 1024))

    @property
    def is_jetlake(self) -> bool:
        """Whether the server is one of ours, which answers requests that others leave without an answer."""
        return str(self.info.get("git_commit", "")).startswith("jetlake-")

    @property
    def is_local(self) -> bool:
        """Whether the server is on this machine: both ends have the same address."""
        try:
            return bool(self._socket.getpeername()[0] == self._socket.getsockname()[0])
        except OSError:
            return False

    @property
    def server_version(self) -> tuple[int, ...]:
        """The version the server says it has, as numbers."""
        parts = str(self.info.get("version", "0")).split("-")[0].split(".")
        return tuple(int(part) if part.isdigit() else 0 for part in parts)

    def request(
        self, subject: str, payload: bytes = b"", *, headers: bytes = b"", timeout_s: float = ANSWER_S_MAX
    ) -> RawMessage:
        """Send one request and return its answer; `headers` is a whole block, its last empty line included."""
        self._requests += 1
        reply = f"{self._inbox}.{self._requests}"
        if headers:
            line = f"HPUB {subject} {reply} {len(headers)} {len(headers) + len(payload)}\r\n"
        else:
            line = f"PUB {subject} {reply} {len(payload)}\r\n"
        self.send(line.encode() + headers + payload + b"\r\n")
        deadline = time.monotonic() + timeout_s
        while True:
            message = self._next_message(deadline, subject)
            # An answer to an earlier request may come after its time is over.
            if message.subject != reply:
                continue
            if message.status == NO_RESPONDERS:
                raise ClientError(
                    f"nobody answers {subject}: the server has no JetStream (start it with -js), or a user may not ask"
                )
            return message

    def new_inbox(self) -> str:
        """Return a subject for answers that nobody else uses; it is not subscribed yet."""
        return f"{self._settings.inbox_prefix}.{secrets.token_hex(11)}"

    def new_subscription(self) -> int:
        """Return a number for a subscription that is not used on this connection yet."""
        self._subscriptions += 1
        return self._subscriptions

    def send(self, data: bytes) -> None:
        try:
            self._socket.sendall(data)
        except OSError as error:
            raise self._lost(error) from error

    def take_unparsed(self) -> bytes:
        """Return what was read and not parsed; from here on the caller reads with `receive`."""
        taken = bytes(self._buffer)
        self._buffer.clear()
        return taken

    def receive(self, timeout_s: float = ANSWER_S_MAX) -> bytes:
        """Return the next bytes of the socket."""
        try:
            self._socket.settimeout(timeout_s)
            data = self._socket.recv(RECEIVE_BYTES_MAX)
        except TimeoutError as error:
            self.broken = True
            raise ClientError(f"{self.url} sent nothing for {timeout_s:g} s: check that it still runs") from error
        except OSError as error:
            raise self._lost(error) from error
        finally:
            self._socket.settimeout(None)
        if not data:
            self.broken = True
            raise ClientError(f"{self.url} closed the connection: check its log, then try again")
        return data

    def try_receive(self, timeout_s: float) -> bytes | None:
        """Return the next bytes of the socket, or None if nothing comes in time; the connection stays good then."""
        try:
            self._socket.settimeout(timeout_s)
            data = self._socket.recv(RECEIVE_BYTES_MAX)
        except TimeoutError:
            return None
        except OSError as error:
            raise self._lost(error) from error
        finally:
            self._socket.settimeout(None)
        if not data:
            self.broken = True
            raise ClientError(f"{self.url} closed the connection: check its log, then try again")
        return data

    # Frames of small answers; rows never come through here.

    def _next_message(self, deadline: float, subject: str) -> RawMessage:
        while True:
            line = self._read_line(deadline, subject)
            word, _, rest = line.partition(b" ")
            word = word.upper()
            if word in (b"MSG", b"HMSG"):
                return self._read_message(word, rest.split(), deadline, subject)
            if word == b"PING":
                self.send(b"PONG\r\n")
            elif word == b"INFO":
                self.info = {**self.info, **_object(rest)}
            elif word == b"-ERR":
                raise ClientError(f"{self.url} says {rest.decode(errors='replace')} to {subject}")

    def _read_message(self, word: bytes, words: list[bytes], deadline: float, subject: str) -> RawMessage:
        sizes = 2 if word == b"HMSG" else 1
        total = int(words[-1])
        head = int(words[-2]) if sizes == 2 else 0
        names = [part.decode(errors="replace") for part in words[:-sizes]]
        while len(self._buffer) < total + 2:
            self._fill(deadline, subject)
        body = bytes(self._buffer[:total])
        del self._buffer[: total + 2]
        return RawMessage(names[0], names[2] if len(names) > 2 else "", body[:head], body[head:])

    def _read_line(self, deadline: float, subject: str) -> bytes:
        while (end := self._buffer.find(b"\r\n")) < 0:
            if len(self._buffer) > LINE_BYTES_MAX:
                raise ClientError(f"{self.url} is not a NATS server: its answer has no end of a line")
            self._fill(deadline, subject)
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 2]
        return line

    def _fill(self, deadline: float, subject: str) -> None:
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            self.broken = True
            raise ClientError(f"{self.url} did not answer {subject} in time: try again, or see its log")
        self._buffer += self.receive(left_s)

    # How a connection is made.

    def _connect(self) -> socket.socket:
        reasons = []
        for url in self._settings.url.split(","):
            try:
                return self._connect_to(url.strip())
            except ClientError as error:
                reasons.append(str(error))
        raise ClientError("; ".join(reasons))

    def _connect_to(self, url: str) -> socket.socket:
        address = urlsplit(url if "://" in url else f"nats://{url}")
        if address.scheme not in ("nats", "tls") or not address.hostname:
            raise ConfigurationError(f"the url {url!r} is not a server URL: write nats://host:4222 or tls://host:4222")
        self.url = f"{address.scheme}://{address.hostname}:{address.port or DEFAULT_PORT}"
        deadline = time.monotonic() + CONNECT_S_MAX
        try:
            self._socket = socket.create_connection((address.hostname, address.port or DEFAULT_PORT), CONNECT_S_MAX)
        except OSError as error:
            raise ClientError(
                f"cannot connect to {self.url}: {reason_of(error)}; check that a server runs there, "
                "or start one with `jetlake dev`"
            ) from error
        try:
            self._greet(address.scheme, address.hostname, deadline, self._credentials_of(address))
        except BaseException:
            self._socket.close()
            raise
        return self._socket

    def _greet(self, scheme: str, host: str, deadline: float, credentials: ClientCredentials) -> None:
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SOCKET_BUFFER_BYTES)
        self._buffer.clear()
        if self._settings.tls_first:
            self._secure(host)
        line = self._read_line(deadline, "INFO")
        if not line.upper().startswith(b"INFO "):
            raise ClientError(f"{self.url} is not a NATS server: it began with {line[:40]!r}")
        self.info = _object(line[5:])
        wanted = scheme == "tls" or self._settings.tls_ca or self._settings.tls_certificate
        if not self._settings.tls_first and (self.info.get("tls_required") or wanted):
            if not (self.info.get("tls_required") or self.info.get("tls_available")):
                raise ClientError(f"{self.url} does not speak TLS: use nats://, or turn TLS on at the server")
            self._secure(host)
        fields = {
            "verbose": False,
            "pedantic": False,
            "headers": True,
            "no_responders": True,
            "echo": False,
            "lang": "python-jetlake",
            "version": "1",
            "protocol": 1,
            "name": self._settings.name,
            **credentials.connect_fields(str(self.info.get("nonce", ""))),
        }
        self.send(b"CONNECT " + json.dumps(fields).encode() + b"\r\nPING\r\n")
        while True:
            line = self._read_line(deadline, "CONNECT")
            if line.upper().startswith(b"-ERR"):
                raise ClientError(
                    f"{self.url} refused the connection: {line[5:].decode(errors='replace')}; check the credentials"
                )
            if line.upper() == b"PONG":
                return

    def _secure(self, host: str) -> None:
        try:
            context = ssl.create_default_context(cafile=self._settings.tls_ca or None)
            if self._settings.tls_certificate:
                context.load_cert_chain(self._settings.tls_certificate, self._settings.tls_key or None)
        except (OSError, ssl.SSLError) as error:
            raise ConfigurationError(f"the TLS files cannot be used: {reason_of(error)}") from error
        try:
            self._socket = context.wrap_socket(self._socket, server_hostname=host)
        except (OSError, ssl.SSLError) as error:
            raise ClientError(f"TLS with {self.url} failed: {reason_of(error)}; check tlsCa and the name") from error

    def _credentials_of(self, address: Any) -> ClientCredentials:
        """Return the credentials in the address, which go before those of the settings."""
        if address.username is None:
            return self._settings.credentials
        if address.password is None:
            return ClientCredentials(token=unquote(address.username))
        return ClientCredentials(user=unquote(address.username), password=unquote(address.password))

    def _lost(self, error: OSError) -> ClientError:
        self.broken = True
        return ClientError(f"the connection to {self.url} broke: {reason_of(error)}; try again")


def _object(text: bytes) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise ClientError(f"a server said INFO with something that is not JSON: {text[:100]!r}") from error
    return value if isinstance(value, dict) else {}
