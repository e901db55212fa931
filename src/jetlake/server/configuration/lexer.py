"""The words of a configuration file: keys, texts, numbers, comments, read one after the other from a string.

The lexer knows what a word looks like and nothing of what may follow it; that is the parser's. It follows nats-server
letter by letter where files depend on it:

- a bare text ends at a blank, a newline, `,` `;` `]` or `}`; `#` and `//` inside it are part of it
- a bare text knows the escapes of a quoted one
- what begins with a digit is a number, a size (`64KB`), a date or an address (`127.0.0.1:4222`), or else a bare text
  (`30s`)
- a block text stands between `(` and a line that holds nothing but `)`

Invariant: `position` only grows, and every method either moves it past what it returns or raises.
"""

import re

from jetlake.errors import ConfigurationError
from jetlake.server.configuration.document import DateLiteral, FilePosition
from jetlake.server.configuration.quantities import SIZE_FACTORS
from jetlake.shared.durations import INTEGER_MAX

BLANKS = " \t"
NEWLINES = "\n\r"
END = ""
"""What `peek` returns when there is nothing left; no character equals it."""

TRUE_WORDS = frozenset({"true", "yes", "on"})
FALSE_WORDS = frozenset({"false", "no", "off"})

ESCAPES = {"t": "\t", "n": "\n", "r": "\r", '"': '"', "\\": "\\"}

TERMINATORS = frozenset({END, *BLANKS, *NEWLINES, ",", ";", "]", "}"})

_BARE_PART = re.compile(r"[^\\ \t\n\r,;\]}']*")
_QUOTED_PART = re.compile(r'[^\\"]*')
_BLOCK_END = re.compile(r"\n\)(?=\n|\Z)")
_HEXADECIMAL_BYTE = re.compile("[0-9a-fA-F]{2}")
_DATE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", re.ASCII)
_ADDRESS = re.compile(r"\d+\.\d+\.[\d.:-]*", re.ASCII)
_FLOAT = re.compile(r"-?\d+\.\d+", re.ASCII)
_SIZE = re.compile(r"(-?\d+)([kmgtpe][bi]*)?", re.ASCII | re.IGNORECASE)


class Lexer:
    """A reader of one text. `file` names it in messages."""

    def __init__(self, text: str, file: str) -> None:
        self._text = text
        self._file = file
        self._offset = 0
        self._line = 1
        self._line_start = 0
        self._check_characters()

    def _check_characters(self) -> None:
        try:
            self._text.encode()
        except UnicodeEncodeError as error:
            self._offset = error.start
            raise self.error("half a character; save the file as UTF-8") from None
        if "\0" in self._text:
            self._offset = self._text.index("\0")
            raise self.error("a zero byte does not belong into a configuration file; save it as UTF-8")

    # Places

    def place(self) -> FilePosition:
        """Return where the next character stands."""
        newlines = self._text.count("\n", self._line_start, self._offset)
        if newlines:
            self._line += newlines
            self._line_start = self._text.rindex("\n", 0, self._offset) + 1
        return FilePosition(self._file, self._line, self._offset - self._line_start + 1)

    def error(self, reason: str, place: FilePosition | None = None) -> ConfigurationError:
        return ConfigurationError(f"{place or self.place()}: {reason}")

    # Single characters

    def peek(self) -> str:
        return self._text[self._offset : self._offset + 1]

    def skip_if_next(self, character: str) -> bool:
        """Step over this character if it is the next one."""
        if self.peek() != character:
            return False
        self._offset += 1
        return True

    def skip_blanks(self) -> None:
        """Step over blanks and tabs: what may stand between two words of one line."""
        while self.peek() and self.peek() in BLANKS:
            self._offset += 1

    def skip_space(self) -> None:
        """Step over all white space, newlines included."""
        while self.peek().isspace():
            self._offset += 1

    def skip_comment(self) -> bool:
        """Step over a comment, up to its newline, if one begins here."""
        if self.peek() != "#" and not self._text.startswith("//", self._offset):
            return False
        while self.peek() not in (END, *NEWLINES):
            self._offset += 1
        return True

    # Words

    def read_key(self) -> str:
        """Read a key, bare or quoted. A bare one ends only at white space or a separator."""
        begun_at = self.place()
        for quote in "\"'":
            if self.skip_if_next(quote):
                return self._read_until(quote, "the key", begun_at)
        start = self._offset
        self._offset += 1
        while self.peek() not in (END, "=", ":") and not self.peek().isspace():
            self._offset += 1
        return self._text[start : self._offset]

    def read_include(self) -> str:
        """Read the file name after `include`."""
        begun_at = self.place()
        for quote in "\"'":
            if self.skip_if_next(quote):
                return self._read_until(quote, "the file name", begun_at)
        start = self._offset
        while self.peek() not in (END, *BLANKS, *NEWLINES, ";", "}"):
            self._offset += 1
        name = self._text[start : self._offset]
        if not name or name[0] in "[{(-\\" or name[0].isdigit():
            raise self.error("include needs the name of a file; put it in quotes", begun_at)
        return name

    def read_scalar(self) -> "str | int | float | bool | DateLiteral | Variable":
        """Read a value that is neither a list nor a map."""
        begun_at = self.place()
        first = self.peek()
        if first == "'":
            self._offset += 1
            return self._read_until("'", "the text", begun_at)
        if first == '"':
            self._offset += 1
            text, _ = self._read_escaped(_QUOTED_PART, begun_at)
            if not self.skip_if_next('"'):
                raise self.error('the text that begins here has no closing "', begun_at)
            return text
        if first == "(":
            self._offset += 1
            return self._read_block(begun_at)
        if first == "-" or (first.isascii() and first.isdigit()):
            number = self._read_number(begun_at)
            if number is not None:
                return number
        if first == ".":
            raise self.error("a number begins with a digit; write 0.5 instead of .5, or put a text in quotes")
        return self._read_bare(begun_at)

    def _read_bare(self, begun_at: FilePosition) -> "str | bool | Variable":
        text, escaped = self._read_escaped(_BARE_PART, begun_at)
        # As in nats-server, where `it's` is the text `it` and then something unexpected.
        self.skip_if_next("'")
        if escaped:
            return text
        if text.lower() in TRUE_WORDS:
            return True
        if text.lower() in FALSE_WORDS:
            return False
        if text.startswith("$"):
            return Variable(text[1:])
        return text

    def _read_until(self, quote: str, what: str, begun_at: FilePosition) -> str:
        end = self._text.find(quote, self._offset)
        if end < 0:
            raise self.error(f"{what} that begins here has no closing {quote}", begun_at)
        text = self._text[self._offset : end]
        self._offset = end + 1
        return text

    def _read_escaped(self, plain: re.Pattern[str], begun_at: FilePosition) -> tuple[str, bool]:
        """Read what `plain` matches and escapes, and return the text and whether it had escapes."""
        # Escapes stand for bytes, of which several may make one character.
        content = bytearray()
        escaped = False
        while True:
            part = plain.match(self._text, self._offset)
            assert part is not None, "both patterns match the empty text"
            content += part[0].encode()
            self._offset = part.end()
            if not self.skip_if_next("\\"):
                break
            escaped = True
            content += self._read_escape()
        try:
            return content.decode(), escaped
        except UnicodeDecodeError:
            raise self.error("the text is not UTF-8 once its \\x escapes are replaced", begun_at) from None

    def _read_escape(self) -> bytes:
        place = self.place()
        letter = self.peek()
        self._offset += 1
        if letter in ESCAPES:
            return ESCAPES[letter].encode()
        if letter == "x":
            digits = _HEXADECIMAL_BYTE.match(self._text, self._offset)
            if digits:
                self._offset = digits.end()
                return bytes.fromhex(digits[0])
        raise self.error(
            'unknown escape; these exist: \\xHH \\t \\n \\r \\" \\\\ - or use single quotes, which know none', place
        )

    def _read_block(self, begun_at: FilePosition) -> str:
        start = self._offset
        end = _BLOCK_END.search(self._text, start)
        if end is None:
            raise self.error("the text block that begins here has no closing ) on a line of its own", begun_at)
        self._offset = end.end()
        return self._text[start : end.start() + 1]

    def _read_number(self, begun_at: FilePosition) -> "int | float | str | DateLiteral | None":
        """Read a number, date or address; None = it is not one of these, read it as a bare text."""
        for pattern in (_DATE, _ADDRESS, _FLOAT, _SIZE):
            found = pattern.match(self._text, self._offset)
            if found is None or self._text[found.end() : found.end() + 1] not in TERMINATORS:
                continue
            self._offset = found.end()
            if pattern is _DATE:
                return self._check_date(found[0], begun_at)
            if pattern is _ADDRESS:
                return found[0]
            if pattern is _FLOAT:
                return float(found[0])
            return self._check_size(found[1], found[2] or "", begun_at)
        if self.peek() == "-":
            raise self.error("a number was expected after the minus sign; put a text in quotes", begun_at)
        return None

    def _check_size(self, digits: str, suffix: str, begun_at: FilePosition) -> int:
        factor = SIZE_FACTORS.get(suffix.lower())
        if factor is None:
            raise self.error(f"{digits}{suffix} is not a size; the units are K KB M MB G GB T TB P PB E EB", begun_at)
        number = int(digits) * factor if len(digits) <= len(str(INTEGER_MAX)) + 1 else INTEGER_MAX + 1
        if not -INTEGER_MAX - 1 <= number <= INTEGER_MAX:
            raise self.error("the number is out of range; the largest is 9223372036854775807", begun_at)
        return number

    def _check_date(self, text: str, begun_at: FilePosition) -> DateLiteral:
        from datetime import datetime

        try:
            datetime.fromisoformat(text)
        except ValueError:
            raise self.error(f"{text} is not a calendar date", begun_at) from None
        return DateLiteral(text)


class Variable(str):
    """The name after a `$`: stands for another value."""

    __slots__ = ()
