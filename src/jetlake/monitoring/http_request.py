"""One HTTP request as bytes in, one response as bytes out. No sockets in here.

Only what monitoring needs is read: the request line, whether there is exactly one `Host`, and that every header line is
one. Any method is answered as GET is, as nats-server does, because no page changes anything; HEAD gets no body.

Invariant: `read_head` returns a value or raises `BadRequestError`, for any bytes.
"""

import time

import msgspec

HEAD_BYTES_MAX = 16 * 1024
"""Request line and headers. Browsers with many cookies send about half of this."""

HEADERS_MAX = 100
"""Header lines; nobody asks for a page with more."""

PARAMETERS_MAX = 100
"""Parameters read; the rest is ignored, since no page knows nearly as many."""

TOKEN_LETTERS = frozenset("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")

REASONS = {
    200: "OK",
    307: "Temporary Redirect",
    400: "Bad Request",
    404: "Not Found",
    431: "Request Header Fields Too Large",
    500: "Internal Server Error",
    503: "Service Unavailable",
    505: "HTTP Version Not Supported",
}

PLAIN_TEXT = "text/plain; charset=utf-8"

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


class BadRequestError(Exception):
    """Is raised when bytes are not a request; `status` goes to the sender."""

    def __init__(self, status: int = 400, detail: str = "") -> None:
        super().__init__(f"{status} {REASONS[status]}{detail}")
        self.status = status


class HttpRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The request. `query` is everything after the `?`, as it came."""

    method: str
    path: str
    query: str = ""

    def parameters(self) -> dict[str, str]:
        """Return the first value of each parameter; one that cannot be decoded is left out."""
        values: dict[str, str] = {}
        for pair in self.query.split("&", PARAMETERS_MAX)[:PARAMETERS_MAX]:
            if ";" in pair:
                continue
            name, _, value = pair.partition("=")
            try:
                values.setdefault(_unescaped(name.replace("+", " ")), _unescaped(value.replace("+", " ")))
            except BadRequestError:
                continue
        return values


class Response(msgspec.Struct, frozen=True, kw_only=True):
    """What is answered. `headers` are those besides the usual ones."""

    status: int = 200
    content_type: str = PLAIN_TEXT
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()

    def to_bytes(self, *, with_body: bool = True) -> bytes:
        """Return the response. The connection is for one request, and the response says so."""
        lines = [
            f"HTTP/1.1 {self.status} {REASONS[self.status]}",
            *(f"{name}: {value}" for name, value in self.headers),
            f"Content-Type: {self.content_type}",
            f"Date: {_http_date(time.time())}",
            f"Content-Length: {len(self.body)}",
            "Connection: close",
        ]
        # A `Location` may name a host in any alphabet; browsers and Go take it as UTF-8.
        head = "\r\n".join([*lines, "", ""]).encode(errors="replace")
        return head + self.body if with_body else head


def find_end(received: bytes | bytearray) -> int:
    """Return where the head ends, -1 while it is incomplete. Lines may end without a carriage return."""
    end = received.find(b"\n\r\n")
    bare_end = received.find(b"\n\n")
    if end < 0 or 0 <= bare_end < end:
        return bare_end + 2 if bare_end >= 0 else -1
    return end + 3


def check_first_line(received: bytes | bytearray) -> None:
    """Raise `BadRequestError` as soon as it is certain that this cannot become a request."""
    end = received.find(b"\n")
    if end >= 0:
        _read_first_line(bytes(received[:end]))


def read_head(head: bytes) -> HttpRequest:
    """Read a complete head. Raises `BadRequestError`."""
    first, *lines = head.split(b"\n")
    method, target, minor_version = _read_first_line(first)
    hosts = 0
    headers = [line.removesuffix(b"\r") for line in lines]
    headers = [line for line in headers if line]
    if len(headers) > HEADERS_MAX:
        raise BadRequestError(431)
    for line in headers:
        name, colon, _ = line.partition(b":")
        if not colon or not _is_token(name):
            raise BadRequestError
        hosts += name.lower() == b"host"
    if hosts > 1:
        raise BadRequestError
    if hosts == 0 and minor_version > 0:
        raise BadRequestError(400, ": missing required Host header")
    path, _, query = _without_authority(target).partition("?")
    return HttpRequest(method=method, path=_unescaped(path), query=query)


def _read_first_line(line: bytes) -> tuple[str, str, int]:
    """Return method, target and minor version."""
    words = line.removesuffix(b"\r").split(b" ")
    if len(words) != 3 or not _is_token(words[0]):
        raise BadRequestError
    method, target, version = words
    if len(version) != 8 or not version.startswith(b"HTTP/") or not (version[5:6] + version[7:]).isdigit():
        raise BadRequestError
    if version[5:7] != b"1.":
        raise BadRequestError(505, ": unsupported protocol version")
    if not target or any(byte <= 0x20 or byte == 0x7F for byte in target):
        raise BadRequestError
    # Bytes above ASCII are taken as they are, like every text of a client.
    return method.decode("ascii"), target.decode("utf-8", "replace"), int(version[7:])


def _without_authority(target: str) -> str:
    """Return the path of `http://host/path`, which proxies send; any other target must begin with a slash."""
    if target.startswith("/"):
        return target
    scheme, separator, rest = target.partition("://")
    if not separator or scheme.lower() not in {"http", "https"}:
        raise BadRequestError
    return f"/{rest.partition('/')[2]}"


def _unescaped(text: str) -> str:
    if "%" not in text:
        return text
    for escape in text.split("%")[1:]:
        if len(escape) < 2 or not escape.isprintable() or not _is_hexadecimal(escape[:2]):
            raise BadRequestError
    # Few requests need it, and a server under test starts faster without it.
    from urllib.parse import unquote_to_bytes

    return unquote_to_bytes(text).decode("utf-8", "replace")


def _is_hexadecimal(digits: str) -> bool:
    return all(digit in "0123456789abcdefABCDEF" for digit in digits)


def _is_token(name: bytes) -> bool:
    return bool(name) and all(chr(byte) in TOKEN_LETTERS for byte in name)


def _http_date(unix_s: float) -> str:
    """Return a date in English, whatever language the process speaks."""
    moment = time.gmtime(unix_s)
    day, month = _DAYS[moment.tm_wday], _MONTHS[moment.tm_mon - 1]
    clock = time.strftime("%H:%M:%S", moment)
    return f"{day}, {moment.tm_mday:02d} {month} {moment.tm_year} {clock} GMT"
