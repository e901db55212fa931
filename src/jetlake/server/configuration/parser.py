"""The structure of a configuration file: maps, lists, variables, includes.

```text
file  = entries, or one map in braces as in JSON
entry = key [= or :] value, ended by a newline, a comma or a semicolon
value = text, number, boolean, [ list ], { map }, $variable
```

Variables are looked up in the enclosing maps, innermost first, among the keys that came before; then in the
environment, whose text is read as a value. An included file sees the environment and its own keys only; its keys become
keys of the map that includes it.

Whatever the input: the result is a map, or a `ConfigurationError` that says where and what. Depth and size have limits,
because users other than the operator may be able to write the file.
"""

import os
import re
from collections.abc import Collection

from jetlake.errors import ConfigurationError, reason_of
from jetlake.server.configuration.document import ConfigurationNode, Data, FilePosition
from jetlake.server.configuration.lexer import NEWLINES, Lexer, Variable

NESTING_MAX = 64
"""Maps and lists inside each other; real files have about six."""

INCLUDES_MAX = 32
"""Files that include each other, and environment variables that do; a circle is found long before."""

VALUES_MAX = 4_000_000
"""Values of a configuration once its variables are replaced: a file of a hundred thousand users has a million. A few
lines with variables could stand for more than any memory holds."""

FILE_BYTES_MAX = 64 * 1024 * 1024
"""A file of a hundred thousand users has about 10 MB."""

TEXT_NAME = "<text>"
"""What a configuration given as text is called in messages."""

SECRET_KEYS = frozenset({"pass", "password", "token", "key", "ek", "encryption_key", "prev_key", "prev_ek"})
"""A text after one of these that begins with `$` may be a password without its quotes; it is not repeated."""

_BCRYPT_VARIABLE = re.compile(r"2[abxy]\$")


def parse_file(path: str) -> ConfigurationNode:
    """Return the map a file describes. Raises `ConfigurationError`."""
    return _parse_file(path, ())


def parse_text(text: str, folder: str = "") -> ConfigurationNode:
    """Return the map a text describes; its includes are relative to `folder`. Raises `ConfigurationError`."""
    return _Parser(Lexer(text, TEXT_NAME), folder, ()).parse()


def _parse_file(path: str, including: tuple[str, ...]) -> ConfigurationNode:
    try:
        with open(path, "rb") as file:
            content = file.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        raise ConfigurationError(f"open {path}: {reason_of(error)}") from error
    except ValueError as error:
        raise ConfigurationError(f"open {path!r}: this cannot be the name of a file") from error
    if len(content) > FILE_BYTES_MAX:
        raise ConfigurationError(f"{path}: larger than {FILE_BYTES_MAX} bytes; is it a configuration file?")
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        column = error.start - content.rfind(b"\n", 0, error.start)
        raise ConfigurationError(f"{path}:{line}:{column}: not UTF-8; save the file as UTF-8") from None
    chain = (*including, os.path.realpath(path))
    return _Parser(Lexer(text, path), os.path.dirname(path), chain).parse()


class _Parser:
    def __init__(
        self, lexer: Lexer, folder: str, including: tuple[str, ...], environment_names: frozenset[str] = frozenset()
    ) -> None:
        self._lexer = lexer
        self._folder = folder
        self._including = including
        # The variables whose environment text is being read: one that comes up again refers to itself.
        self._environment_names = environment_names
        # The maps around the current place, outermost first, as far as they have been read.
        self._scopes: list[dict[str, ConfigurationNode]] = []
        self._key = ""
        self._nesting = 0

    def parse(self) -> ConfigurationNode:
        lexer = self._lexer
        entries: dict[str, ConfigurationNode] = {}
        self._scopes.append(entries)
        start = lexer.place()
        braces = 0
        while True:
            self._skip_space_and_comments()
            if lexer.peek() == "":
                break
            if lexer.skip_if_next("{"):
                braces += 1
            elif braces and lexer.skip_if_next("}"):
                braces -= 1
                self._end_top_entry(in_braces=bool(braces))
            elif lexer.peek() == "}" and self._is_last_brace():
                break
            else:
                self._read_entry(entries, in_map=bool(braces))
                self._end_top_entry(in_braces=bool(braces))
        if braces:
            raise lexer.error("the file ends inside a map; a } is missing")
        return self._counted(entries, start, entries.values())

    def _is_last_brace(self) -> bool:
        """A closing brace too many is forgiven at the end of a file, as in nats-server, and nowhere else."""
        place = self._lexer.place()
        self._lexer.skip_if_next("}")
        self._skip_space_and_comments()
        if self._lexer.peek() != "":
            raise self._lexer.error("this } closes nothing", place)
        return True

    # Entries of a map

    def _read_entry(self, entries: dict[str, ConfigurationNode], *, in_map: bool) -> None:
        lexer = self._lexer
        if lexer.peek() in ("=", ":"):
            raise lexer.error(f"a key was expected before {lexer.peek()!r}")
        bare = lexer.peek() not in ("'", '"')
        place = lexer.place()
        key = lexer.read_key()
        if bare and key.lower() == "include" and lexer.peek().isspace():
            lexer.skip_blanks()
            self._include(entries)
            return
        lexer.skip_space()
        separated = lexer.skip_if_next("=") or lexer.skip_if_next(":")
        if separated and not in_map:
            lexer.skip_blanks()
            if lexer.peek() and lexer.peek() in NEWLINES:
                raise lexer.error(f'the value of "{key}" must be on the same line')
        elif separated:
            lexer.skip_space()
        if lexer.peek() == "" and not separated:
            raise lexer.error(f'"{key}" has no value', place)
        if in_map and lexer.peek() in (",", "}"):
            raise lexer.error(f'"{key}" has no value', place)
        self._key = key
        node = self._read_value()
        # The place of an entry is that of its key; the value of a variable is shared, so the node is a new one.
        entries.pop(key, None)
        entries[key] = node.at(place)

    def _include(self, entries: dict[str, ConfigurationNode]) -> None:
        place = self._lexer.place()
        path = os.path.normpath(os.path.join(self._folder, self._lexer.read_include().lstrip("/")))
        if os.path.realpath(path) in self._including:
            raise self._lexer.error(f"{path} is included by itself", place)
        if len(self._including) >= INCLUDES_MAX:
            raise self._lexer.error(f"more than {INCLUDES_MAX} files include each other", place)
        try:
            included = _parse_file(path, self._including)
        except ConfigurationError as error:
            raise ConfigurationError(f"{place}: in the included file: {error}") from error
        assert isinstance(included.data, dict)
        entries.update(included.data)

    def _end_top_entry(self, *, in_braces: bool) -> None:
        lexer = self._lexer
        lexer.skip_blanks()
        if lexer.skip_comment() or lexer.peek() == "" or lexer.peek() in NEWLINES:
            return
        if lexer.skip_if_next(",") or lexer.skip_if_next(";") or lexer.peek() == "}":
            return
        what = "a newline, a comma or a }" if in_braces else "a newline, a comma or a semicolon"
        raise lexer.error(f"{what} was expected after the value; a text with blanks needs quotes")

    # Values

    def _read_value(self) -> ConfigurationNode:
        lexer = self._lexer
        place = lexer.place()
        if lexer.peek() in ("[", "{"):
            self._nesting += 1
            if self._nesting > NESTING_MAX:
                raise lexer.error(f"more than {NESTING_MAX} maps and lists inside each other")
            node = self._read_list(place) if lexer.skip_if_next("[") else self._read_map(place)
            self._nesting -= 1
            if node.depth > NESTING_MAX:
                raise lexer.error(f"more than {NESTING_MAX} maps and lists inside each other", place)
            return node
        value = lexer.read_scalar()
        return self._resolve(value, place).at(place) if isinstance(value, Variable) else ConfigurationNode(value, place)

    def _counted(self, data: Data, place: FilePosition, inner: Collection[ConfigurationNode]) -> ConfigurationNode:
        """Return a map or a list; `inner` are the values in it."""
        count = 1 + sum(node.value_count for node in inner)
        if count > VALUES_MAX:
            raise self._lexer.error(f"more than {VALUES_MAX} values, once the variables are replaced", place)
        return ConfigurationNode(
            data, place, depth=1 + max((node.depth for node in inner), default=0), value_count=count
        )

    def _read_list(self, begun_at: FilePosition) -> ConfigurationNode:
        lexer = self._lexer
        values: list[ConfigurationNode] = []
        while True:
            self._skip_space_and_comments()
            if lexer.skip_if_next("]"):
                return self._counted(values, begun_at, values)
            if lexer.peek() == "":
                raise lexer.error("the list that begins here has no closing ]", begun_at)
            if lexer.peek() == ",":
                raise lexer.error("a value was expected before the comma")
            values.append(self._read_value())
            lexer.skip_blanks()
            lexer.skip_comment()
            if lexer.peek() not in ("", "]", *NEWLINES) and not lexer.skip_if_next(","):
                raise lexer.error("a comma, a newline or a ] was expected in the list; a text with blanks needs quotes")

    def _read_map(self, begun_at: FilePosition) -> ConfigurationNode:
        lexer = self._lexer
        lexer.skip_if_next("{")
        entries: dict[str, ConfigurationNode] = {}
        self._scopes.append(entries)
        while True:
            self._skip_space_and_comments()
            if lexer.skip_if_next("}"):
                self._scopes.pop()
                return self._counted(entries, begun_at, entries.values())
            if lexer.peek() == "":
                raise lexer.error("the map that begins here has no closing }", begun_at)
            if lexer.peek() == "]":
                raise lexer.error("a key or a } was expected, not a ]")
            self._read_entry(entries, in_map=True)
            lexer.skip_blanks()
            lexer.skip_comment()
            if lexer.peek() not in ("", "}", *NEWLINES) and not (lexer.skip_if_next(",") or lexer.skip_if_next(";")):
                raise lexer.error(
                    "a comma, a newline or a } was expected after the value; a text with blanks needs quotes"
                )

    # Variables

    def _resolve(self, name: Variable, place: FilePosition) -> ConfigurationNode:
        if _BCRYPT_VARIABLE.match(name):
            # A hash that was not put in quotes, as nats-server allows.
            return ConfigurationNode(f"${name}", place)
        for scope in reversed(self._scopes):
            if name in scope:
                scope[name].used = True
                return scope[name]
        if name in self._environment_names:
            raise self._lexer.error(f"the variable ${name} refers to itself", place)
        if len(self._environment_names) >= INCLUDES_MAX:
            raise self._lexer.error(f"more than {INCLUDES_MAX} environment variables refer to each other", place)
        text = os.environ.get(name)
        if text is None:
            which = "this variable" if self._key.lower() in SECRET_KEYS else f"the variable ${name}"
            raise self._lexer.error(
                f"{which} is not defined: no key above and no environment variable has that name; "
                "put a text that begins with $ in quotes",
                place,
            )
        return self._read_environment(name, text, place)

    def _read_environment(self, name: Variable, text: str, place: FilePosition) -> ConfigurationNode:
        try:
            lexer = Lexer(f"value={text}", f"environment variable {name}")
            entries = _Parser(lexer, "", self._including, self._environment_names | {name}).parse().data
        except ConfigurationError as error:
            raise ConfigurationError(f"{place}: {error}") from error
        assert isinstance(entries, dict)
        return entries["value"]

    def _skip_space_and_comments(self) -> None:
        self._lexer.skip_space()
        while self._lexer.skip_comment():
            self._lexer.skip_space()
