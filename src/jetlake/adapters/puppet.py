"""Puppet's hashes: what a manifest says about adapters, read without Puppet.

```puppet
class{"choria::broker":
  adapters => { "node_data" => { "stream" => { "type" => "jetstream" } } }
}
```

Only data is understood: hashes, lists, texts, numbers, true, false, undef. Variables, functions and conditions need
Puppet itself; they are refused with their line.
"""

import re
import sys
from typing import Any

from jetlake.errors import ConfigurationError

__all__ = ["parse_manifest"]

DEPTH_MAX = 50
"""Hashes within hashes; an adapter needs four."""

_TOKEN = re.compile(
    r"""
      (?P<blank>\s+|\#[^\n]*)
    | (?P<text>"(?:[^"\\]|\\[\s\S])*"|'(?:[^'\\]|\\[\s\S])*')
    | (?P<number>-?\d+(?:\.\d+)?)
    | (?P<arrow>=>)
    | (?P<word>[A-Za-z_][\w:]*)
    | (?P<mark>[{}\[\],:;])
    """,
    re.VERBOSE,
)
_IN_SINGLE_QUOTES = re.compile(r"\\([\\'])")
_IN_DOUBLE_QUOTES = re.compile(r"\\(u\{[0-9A-Fa-f]+\}|u[0-9A-Fa-f]{4}|\r?\n|[\\\"'$nrst])|(\$(?=\w|\{|::))")
"""What an escape is in each kind of quotes, and where a variable begins; any other backslash stands for itself."""

_MEANT = {"n": "\n", "r": "\r", "s": " ", "t": "\t", "\n": "", "\r\n": ""}
_WORDS = {"true": True, "false": False, "undef": None}


def parse_manifest(text: str, source: str = "the manifest") -> dict[str, Any]:
    """Return the parameters of the first class declaration of a text. Raises `ConfigurationError`."""
    reader = _Reader(text, source)
    if reader.next_token() != "class":
        raise reader.refusal('a manifest begins with class{"choria::broker":')
    reader.expect("{")
    reader.next_token()
    reader.expect(":")
    return reader.pairs("}", depth=1)


class _Reader:
    """The tokens of a text, taken one after the other."""

    def __init__(self, text: str, source: str) -> None:
        self._source = source
        self._text = text
        self._at = 0

    def next_token(self) -> Any:
        """Return the next token: a text as `_Text`, a number, a word or a mark; None at the end."""
        while self._at < len(self._text):
            found = _TOKEN.match(self._text, self._at)
            if found is None:
                raise self.refusal(f"{self._text[self._at : self._at + 20]!r} is not understood: write plain data")
            self._at = found.end()
            kind = found.lastgroup
            if kind == "blank":
                continue
            if kind == "text":
                body = found[0][1:-1]
                if found[0][0] == "'":
                    return _Text(_IN_SINGLE_QUOTES.sub(r"\1", body))
                return _Text(_IN_DOUBLE_QUOTES.sub(self._meant, body))
            if kind == "number":
                return float(found[0]) if "." in found[0] else int(found[0])
            return found[0]
        return None

    def _meant(self, found: "re.Match[str]") -> str:
        """Return what an escape in double quotes stands for."""
        if found[2]:
            raise self.refusal("variables are not understood: write the value itself")
        word = found[1]
        if word[0] != "u":
            return _MEANT.get(word, word)
        number = int(word[1:].strip("{}"), 16)
        if number > sys.maxunicode or 0xD800 <= number <= 0xDFFF:
            raise self.refusal(f"\\{word} is not a character: write the text itself")
        return chr(number)

    def peek(self) -> Any:
        before = self._at
        token = self.next_token()
        self._at = before
        return token

    def expect(self, mark: str) -> None:
        token = self.next_token()
        if isinstance(token, _Text) or token != mark:
            raise self.refusal(f"{mark} is expected, not {str(token)[:20]!r}")

    def pairs(self, end: str, depth: int) -> dict[str, Any]:
        """Return what stands up to the end mark: `key => value` with commas between."""
        found: dict[str, Any] = {}
        while True:
            if self.peek() == end:
                self.next_token()
                return found
            key = self.next_token()
            if key is None or (not isinstance(key, str | int | float)) or key in tuple("{}[],:;"):
                raise self.refusal("a key is expected")
            self.expect("=>")
            found[str(key)] = self.value(depth)
            if self.peek() != end:
                self.expect(",")

    def value(self, depth: int) -> Any:
        if depth > DEPTH_MAX:
            raise self.refusal(f"hashes are nested deeper than {DEPTH_MAX}")
        token = self.next_token()
        if isinstance(token, _Text | int | float):
            return str(token) if isinstance(token, _Text) else token
        if token == "{":  # noqa: S105
            return self.pairs("}", depth + 1)
        if token == "[":  # noqa: S105
            return self._items(depth + 1)
        if token in _WORDS:
            return _WORDS[token]
        raise self.refusal(f"{str(token)[:20]!r} is not understood: write a text in quotes, a number, a list or a hash")

    def _items(self, depth: int) -> list[Any]:
        found = []
        while self.peek() != "]":
            found.append(self.value(depth))
            if self.peek() != "]":
                self.expect(",")
        self.next_token()
        return found

    def refusal(self, reason: str) -> ConfigurationError:
        return ConfigurationError(f"{self._source}:{self._text.count(chr(10), 0, self._at) + 1}: {reason}")


class _Text(str):
    """A text in quotes, which is never punctuation, whatever it contains."""

    __slots__ = ()
