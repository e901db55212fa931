"""Payloads on pages: bytes as text, JSON or hex, by detection or as the reader wants; and back, from a form.

```python
view = view_of(payload, request.query.get("as", ""))     # {{ payloads.show(view, …) }} shows it
edit = edit_of(payload)                                  # {{ payloads.editor(edit) }}
payload = read_edited(await request.post())
```

Invariant: `read_edited` of what a browser sends for an untouched `edit_of(payload)` is the payload, byte for byte.
"""

import difflib
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from jetlake.errors import ConfigurationError

__all__ = ["DiffLine", "PayloadEdit", "PayloadView", "differences", "edit_of", "preview_of", "read_edited", "view_of"]

SHOWN_LETTERS_MAX = 64 * 1024
"""Letters of a payload on a page: more is downloaded."""

HEX_BYTES_MAX = 4 * 1024
"""Bytes shown as hex, 256 lines; more is downloaded."""

PARSED_BYTES_MAX = 2 * 1024 * 1024
"""Bytes that are looked at to find out whether they are JSON."""

EDITED_BYTES_MAX = 128 * 1024
"""Bytes that a form takes: a form is limited to 1 MB, and takes up to six letters for one byte."""

PREVIEW_LETTERS_MAX = 120
"""Letters of a payload in a list."""

DIFF_LINES_MAX = 2_000
"""Lines on each side of a comparison, whose time can grow with their product."""

HEX_COLUMNS = 16

TEXT, JSON, HEX = "text", "json", "hex"

_CONTROLS = {code: 0x2400 + code for code in range(0x20) if chr(code) not in "\t\n"} | {0x7F: 0x2421}
"""Control characters and the pictures that Unicode has of them."""


class PayloadView(NamedTuple):
    """A payload as a page shows it."""

    kind: str
    # What it can be shown as.
    kinds: tuple[str, ...]
    text: str
    size_bytes: int
    # More is there than is shown.
    is_cut: bool


class PayloadEdit(NamedTuple):
    """A payload in a form."""

    kind: str
    text: str
    # It has lines that end as on Windows; browsers send all lines so.
    has_carriage_returns: bool = False


class DiffLine(NamedTuple):
    """One line of a comparison; `mark` is `+`, `-`, `@` for a heading, or a blank."""

    mark: str
    text: str


def view_of(payload: bytes, wanted: str = "") -> PayloadView:
    """Return a payload as it is wanted, or as what it seems to be."""
    text = _text_of(payload)
    pretty = _json_of(payload) if text is not None else None
    kinds = (TEXT, HEX) if pretty is None else (JSON, TEXT, HEX)
    detected = JSON if pretty is not None else TEXT if text is not None else HEX
    kind = wanted if wanted in kinds else detected
    if kind == HEX:
        return PayloadView(HEX, kinds, _hex_lines(payload[:HEX_BYTES_MAX]), len(payload), len(payload) > HEX_BYTES_MAX)
    if kind == JSON:
        shown = pretty or ""
    else:
        # A letter has four bytes at most, so this is enough to know whether it is cut.
        part = payload[: 4 * SHOWN_LETTERS_MAX + 4]
        shown = part.decode(errors="replace").replace("\r\n", "\n").translate(_CONTROLS)
    return PayloadView(kind, kinds, shown[:SHOWN_LETTERS_MAX], len(payload), len(shown) > SHOWN_LETTERS_MAX)


def preview_of(payload: bytes) -> str:
    """Return the beginning of a payload, in one line."""
    part = payload[: 4 * PREVIEW_LETTERS_MAX]
    if _text_of(part, is_part=len(part) < len(payload)) is None:
        start = payload[:HEX_COLUMNS].hex(" ")
        return f"{start} …" if len(payload) > HEX_COLUMNS else start
    text = " ".join(part.decode(errors="ignore").split())
    return f"{text[:PREVIEW_LETTERS_MAX]} …" if len(text) > PREVIEW_LETTERS_MAX else text


def edit_of(payload: bytes) -> PayloadEdit | None:
    """Return a payload for a form, as hex unless a browser returns the text as it is; None if it is too large."""
    if len(payload) > EDITED_BYTES_MAX:
        return None
    text = _text_of(payload)
    if text is None:
        return PayloadEdit(HEX, payload.hex(" "))
    plain = text.replace("\r\n", "\n")
    if "\r" in plain or ("\r\n" in text and plain.count("\n") != text.count("\r\n")):
        return PayloadEdit(HEX, payload.hex(" "))
    return PayloadEdit(TEXT, plain, "\r\n" in text)


def read_edited(form: Mapping[str, Any]) -> bytes:
    """Return the payload of a form. Raises `ConfigurationError` if it is not what its format says."""
    text = form.get("payload")
    if not isinstance(text, str):
        raise ConfigurationError("The form has no payload. Load the page again.")
    if form.get("format") == HEX:
        try:
            payload = bytes.fromhex(text)
        except ValueError as error:
            raise ConfigurationError(f"The payload is not hex: {error}. Write two digits for each byte.") from error
    else:
        plain = text.replace("\r\n", "\n")
        payload = (plain.replace("\n", "\r\n") if form.get("line_ends") == "windows" else plain).encode()
        if form.get("format") == JSON:
            try:
                msgspec.json.decode(payload)
            except (msgspec.DecodeError, RecursionError) as error:
                raise ConfigurationError(
                    f"The payload is not JSON: {error}. Correct it, or send it as text."
                ) from error
    if len(payload) > EDITED_BYTES_MAX:
        raise ConfigurationError(
            f"The payload has {len(payload):,} bytes; a form takes {EDITED_BYTES_MAX:,}. Use the command line for it."
        )
    return payload


def differences(before: bytes, after: bytes) -> tuple[list[DiffLine], bool]:
    """Compare two payloads line by line, as JSON or text if both are; tell also whether all of both was compared."""
    kinds = {view_of(before).kind, view_of(after).kind}
    kind = kinds.pop() if len(kinds) == 1 else TEXT if HEX not in kinds else HEX
    views = [view_of(payload, kind) for payload in (before, after)]
    lines = [view.text.split("\n") for view in views]
    is_whole = not any(view.is_cut for view in views) and all(len(each) <= DIFF_LINES_MAX for each in lines)
    found = difflib.unified_diff(lines[0][:DIFF_LINES_MAX], lines[1][:DIFF_LINES_MAX], lineterm="")
    # The first two lines name files.
    return [DiffLine(line[0], line if line.startswith("@") else line[1:]) for line in list(found)[2:]], is_whole


def _text_of(payload: bytes, *, is_part: bool = False) -> str | None:
    """Return a payload that is text, None if it is not; a part may end within a letter."""
    try:
        text = payload.decode()
    except UnicodeDecodeError as error:
        if not is_part or error.reason != "unexpected end of data":
            return None
        text = payload[: error.start].decode()
    return None if any(ord(letter) in _CONTROLS and letter != "\r" for letter in set(text)) else text


def _json_of(payload: bytes) -> str | None:
    """Return a JSON object or array with indents; numbers are those that were sent, digit for digit."""
    if payload.lstrip()[:1] not in (b"{", b"[") or len(payload) > PARSED_BYTES_MAX:
        return None
    try:
        return msgspec.json.format(payload, indent=2).decode()
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None


def _hex_lines(payload: bytes) -> str:
    width = HEX_COLUMNS * 3 - 1
    lines = []
    for offset in range(0, len(payload), HEX_COLUMNS):
        part = payload[offset : offset + HEX_COLUMNS]
        letters = "".join(chr(code) if 0x20 <= code < 0x7F else "." for code in part)
        lines.append(f"{offset:08x}  {part.hex(' '):<{width}}  {letters}")
    return "\n".join(lines)
