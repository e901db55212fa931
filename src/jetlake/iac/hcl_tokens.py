"""The words of HCL, the language of Terraform's files, with their lines.

Templates in texts (`"${var.name}-x"`) come as a list of pieces; everything else as one token each.
"""

import re
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from jetlake.located.nodes import SourceLocation, refusal

TokenKind: TypeAlias = Literal["name", "number", "text", "sign", "line", "end"]

_SPACE = re.compile(r"[ \t\r]+|(?:#|//)[^\n]*|/\*.*?\*/", re.DOTALL)
_NAME = re.compile(r"[A-Za-z_][\w-]*")
_NUMBER = re.compile(r"\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
_SIGN = re.compile(r"==|!=|<=|>=|&&|\|\||=>|\.\.\.|[-+*/%(){}\[\]=,.:?!<>]")
_HEREDOC = re.compile(r"<<(-?)([A-Za-z_]\w*)\r?\n")
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\"}


@dataclass(frozen=True)
class Token:
    """One word; the value of a text is the list of its pieces: text, or the source of an expression and its line."""

    kind: TokenKind
    value: Any
    location: SourceLocation


@dataclass(frozen=True)
class Expression:
    """The source of a `${…}` inside a text."""

    source: str
    location: SourceLocation


def tokens(source: str, file: str, line: int = 1) -> list[Token]:
    """Return the words of a source, the last one saying that it ends."""
    return _Tokens(source, file, line).all()


class _Tokens:
    def __init__(self, source: str, file: str, line: int) -> None:
        self._source = source
        self._file = file
        self._line = line
        self._position = 0

    @property
    def _location(self) -> SourceLocation:
        return SourceLocation(self._file, self._line)

    def all(self) -> list[Token]:
        found: list[Token] = []
        while self._position < len(self._source):
            if self._match(_SPACE) is None:
                found.append(self._next())
        found.append(Token("end", "", self._location))
        return found

    def _next(self) -> Token:
        location = self._location
        if self._source.startswith("\n", self._position):
            self._advance(1)
            return Token("line", "\n", location)
        heredoc = self._match(_HEREDOC)
        if heredoc is not None:
            return Token("text", self._heredoc(heredoc[2], is_indented=bool(heredoc[1]), location=location), location)
        if self._source.startswith('"', self._position):
            self._advance(1)
            return Token("text", self._pieces(location), location)
        for kind, pattern in (("name", _NAME), ("number", _NUMBER), ("sign", _SIGN)):
            taken = self._match(pattern)
            if taken is not None:
                return Token(kind, taken[0], location)  # type: ignore[arg-type]
        raise refusal(location, f"{self._source[self._position]!r} is not valid HCL")

    def _match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        taken = pattern.match(self._source, self._position)
        if taken is not None:
            self._advance(len(taken[0]))
        return taken

    def _advance(self, count: int) -> None:
        self._line += self._source.count("\n", self._position, self._position + count)
        self._position += count

    def _heredoc(self, mark: str, *, is_indented: bool, location: SourceLocation) -> list[str]:
        ending = re.compile(rf"^[ \t]*{mark}[ \t]*$", re.MULTILINE).search(self._source, self._position)
        if ending is None:
            raise refusal(location, f"a text begins with <<{mark} and never ends: write {mark} on a line of its own")
        body = self._source[self._position : ending.start()]
        self._advance(ending.end() - self._position)
        if "${" in body or "%{" in body:
            raise refusal(location, "templates inside a <<text are not read: write the value itself")
        lines = body.splitlines(keepends=True)
        if is_indented:
            margin = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
            lines = [line[margin:] for line in lines]
        return ["".join(lines)]

    def _pieces(self, location: SourceLocation) -> list[str | Expression]:
        pieces: list[str | Expression] = []
        text = ""
        while True:
            letter = self._source[self._position : self._position + 1]
            if letter in ("", "\n"):
                raise refusal(location, 'a text begins with " and never ends')
            if letter == '"':
                self._advance(1)
                return [*pieces, text]
            if self._source.startswith(("$${", "%%{"), self._position):
                text += self._source[self._position + 1 : self._position + 3]
                self._advance(3)
            elif self._source.startswith("%{", self._position):
                raise refusal(location, "directives in texts (%{ … }) are not read: write the value itself")
            elif self._source.startswith("${", self._position):
                pieces += [text, self._expression()]
                text = ""
            elif letter == "\\":
                text += self._escape()
            else:
                text += letter
                self._advance(1)

    def _escape(self) -> str:
        location = self._location
        letter = self._source[self._position + 1 : self._position + 2]
        if letter in _ESCAPES and letter:
            self._advance(2)
            return _ESCAPES[letter]
        size = {"u": 4, "U": 8}.get(letter, 0)
        digits = self._source[self._position + 2 : self._position + 2 + size]
        if not size or not re.fullmatch(rf"[0-9a-fA-F]{{{size}}}", digits) or int(digits, 16) > 0x10FFFF:
            raise refusal(location, f"\\{letter} is not an escape sequence of HCL")
        self._advance(2 + size)
        return chr(int(digits, 16))

    def _expression(self) -> Expression:
        location = self._location
        self._advance(2)
        start, depth = self._position, 1
        while depth:
            letter = self._source[self._position : self._position + 1]
            if not letter:
                raise refusal(location, "a ${ never ends: write }")
            if letter == '"':
                self._advance(1)
                self._pieces(location)
                continue
            depth += {"{": 1, "}": -1}.get(letter, 0)
            self._advance(1)
        return Expression(self._source[start : self._position - 1], location)
