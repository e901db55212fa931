"""Templates: `{{ lookup "data.CFG_username" "nobody" }}` in commands, environments and files.

As much of Go's templates is understood as manifests use: functions with arguments, pipelines, parentheses, texts,
numbers, `{{-` and `-}}`. Lookups are paths into `facts`, `data`, `node` and `machine`; a dot in a key is written `\\.`.

```python
parse_template('{{ lookup "facts.os.family" "?" | ToLower }}').render({"facts": {"os": {"family": "RedHat"}}})
```

Pure functions; a template is parsed once.

Invariant: whatever the text, parsing and rendering return or raise `TemplateError`.
"""

import base64
import binascii
import json
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, TypeAlias

from jetlake.errors import ConfigurationError
from jetlake.suggestions import suggestion

__all__ = ["MISSING", "Template", "TemplateError", "lookup", "parse_template"]

TEMPLATES_KEPT_MAX = 4_096
"""Parsed templates kept: hundreds of machines have some each."""

DEPTH_MAX = 20
"""Parentheses within parentheses."""

OUTPUT_MAX = 16 * 1024 * 1024
"""Characters that a template may make."""

MISSING = object()
"""Stands for what a path does not lead to."""

_ACTION = re.compile(r"\{\{(-\s)?(.*?)(\s-)?\}\}", re.DOTALL)
_TOKEN = re.compile(
    r"""\s*(?:(?P<text>"(?:[^"\\\n]|\\.)*")|(?P<raw>`[^`]*`)|(?P<number>[-+]?\d+(?:\.\d+)?)(?![\w.])"""
    r"""|(?P<word>[A-Za-z_]\w*)|(?P<sign>[()|]))"""
)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED = '"\\/bfnrtu'
_CONTROL = frozenset(("if", "else", "end", "range", "with", "define", "block", "template", "break", "continue"))


class TemplateError(ConfigurationError):
    """Is raised for a template that cannot be parsed or rendered."""


class FunctionCall:
    """A function with its arguments; literals have no function."""

    __slots__ = ("arguments", "name")

    def __init__(self, name: str, arguments: list[Any]) -> None:
        self.name = name
        self.arguments = arguments


Part: TypeAlias = str | FunctionCall


class Template:
    """A parsed template."""

    def __init__(self, parts: list[Part]) -> None:
        self._parts = parts

    def render(self, scope: Mapping[str, Any], overrides: "Callable[[str], Any] | None" = None) -> str:
        """Return the text; `scope` is what lookups see, `overrides` what the function `o` of checks does."""
        texts, length = [], 0
        for part in self._parts:
            text = part if isinstance(part, str) else shown(_value(part, scope, overrides))
            length += len(text)
            if length > OUTPUT_MAX:
                raise TemplateError(f"the template makes more than {OUTPUT_MAX:,} characters")
            texts.append(text)
        return "".join(texts)


@lru_cache(maxsize=TEMPLATES_KEPT_MAX)
def parse_template(text: str) -> Template:
    """Return the template that a text is. Raises `TemplateError`."""
    parts: list[Part] = []
    end, trim_next = 0, False
    for action in _ACTION.finditer(text):
        before = text[end : action.start()]
        parts.append(_trimmed(before, trim_next, bool(action[1])))
        if not action[2].strip().startswith("/*"):
            parts.append(_parse_action(action[2]))
        end, trim_next = action.end(), bool(action[3])
    rest = text[end:]
    if "{{" in rest:
        raise TemplateError("a template is not closed: write }} behind it")
    parts.append(_trimmed(rest, trim_next, False))
    return Template([part for part in parts if part != ""])


def _trimmed(text: str, left: bool, right: bool) -> str:
    text = text.lstrip() if left else text
    return text.rstrip() if right else text


def _parse_action(text: str) -> FunctionCall:
    tokens: list[tuple[str, str]] = []
    position = 0
    stripped = text.strip()
    while position < len(stripped):
        found = _TOKEN.match(stripped, position)
        if found is None:
            raise TemplateError(f"{{{{{text[:60]}}}}}: {stripped[position : position + 20]!r} is not understood here")
        assert found.lastgroup is not None
        tokens.append((found.lastgroup, found[found.lastgroup]))
        position = found.end()
    if tokens and tokens[0][1] in _CONTROL:
        raise TemplateError(f"{{{{{text[:60]}}}}}: {tokens[0][1]} is not supported, only functions are")
    parser = _Parser(tokens, text)
    call = parser.pipeline(0)
    if parser.tokens:
        raise TemplateError(f"{{{{{text[:60]}}}}}: {parser.tokens[0][1]!r} is one too many")
    return call


class _Parser:
    """Takes the tokens of one action apart."""

    def __init__(self, tokens: list[tuple[str, str]], text: str) -> None:
        self.tokens = tokens
        self._text = text

    def pipeline(self, depth: int) -> FunctionCall:
        if depth > DEPTH_MAX:
            raise self._refusal("it is nested too deeply")
        value = self._command(depth)
        while self.tokens and self.tokens[0][1] == "|" and self.tokens[0][0] == "sign":
            self.tokens.pop(0)
            following = self._command(depth)
            if following.name == "":
                raise self._refusal("a function belongs behind |")
            # The value before becomes the last argument.
            following.arguments.append(value)
            value = following
        return value

    def _command(self, depth: int) -> FunctionCall:
        if not self.tokens:
            raise self._refusal("a function or a value is missing")
        kind, word = self.tokens[0]
        if kind != "word" or word in ("true", "false", "nil"):
            return self._operand(depth)
        self.tokens.pop(0)
        if word not in FUNCTIONS:
            raise self._refusal(f"there is no function {word[:40]!r}{suggestion(word, FUNCTIONS)}")
        arguments = []
        while self.tokens and self.tokens[0] not in (("sign", "|"), ("sign", ")")):
            arguments.append(self._operand(depth))
        return FunctionCall(word, arguments)

    def _operand(self, depth: int) -> FunctionCall:
        kind, word = self.tokens.pop(0)
        match kind:
            case "text":
                return FunctionCall("", [_unquoted(word)])
            case "raw":
                return FunctionCall("", [word[1:-1]])
            case "number":
                return FunctionCall("", [float(word) if "." in word else int(word[:40])])
            case "word" if word in ("true", "false", "nil"):
                return FunctionCall("", [{"true": True, "false": False, "nil": None}[word]])
            case "word" if word in FUNCTIONS:
                return FunctionCall(word, [])
            case "sign" if word == "(":
                inner = self.pipeline(depth + 1)
                if not self.tokens or self.tokens.pop(0) != ("sign", ")"):
                    raise self._refusal("a parenthesis is not closed")
                return inner
        raise self._refusal(f"{word[:40]!r} is not a value: put texts between quotation marks")

    def _refusal(self, reason: str) -> TemplateError:
        return TemplateError(f"{{{{{self._text[:60]}}}}}: {reason}")


def _unquoted(word: str) -> str:
    # A path has `\.`, which JSON does not know.
    try:
        return str(json.loads(_ESCAPE.sub(lambda found: found[0] if found[1] in _ESCAPED else "\\" + found[0], word)))
    except ValueError as error:
        raise TemplateError(f"the text {word[:60]} cannot be read: {error}") from error


def _value(call: FunctionCall, scope: Mapping[str, Any], overrides: "Callable[[str], Any] | None") -> Any:
    arguments = [
        _value(argument, scope, overrides) if isinstance(argument, FunctionCall) else argument
        for argument in call.arguments
    ]
    if call.name == "":
        return arguments[0]
    if call.name in ("lookup", "o"):
        if len(arguments) != 2 or not isinstance(arguments[0], str):
            raise TemplateError(f'{call.name} needs a path and a default: {{{{ {call.name} "data.key" "default" }}}}')
        path, default = arguments
        if call.name == "o":
            found = MISSING if overrides is None else overrides(path)
            return default if found is MISSING else found
        found = lookup(scope, path, MISSING)
        return default if found is MISSING else found
    try:
        return FUNCTIONS[call.name](*arguments)
    except (TypeError, ValueError, binascii.Error) as error:
        raise TemplateError(f"{call.name} cannot work with its arguments: {error}") from error


def lookup(value: Any, path: str, default: Any = None) -> Any:
    """Return what is at a path of names, indexes, `#` for a length, and `*` and `?` in names."""
    for index, step in (steps := list(enumerate(_steps(path)))):
        if isinstance(value, Mapping):
            if step in value:
                value = value[step]
            elif ("*" in step or "?" in step) and (key := _match(step, value)) is not None:
                value = value[key]
            else:
                return default
        elif isinstance(value, list):
            if step == "#":
                rest = [each for _, each in steps[index + 1 :]]
                return _each(value, rest) if rest else len(value)
            if not (step.isdecimal() and step.isascii() and len(step) < 10 and int(step) < len(value)):
                return default
            value = value[int(step)]
        else:
            return default
    return value


def _each(items: list[Any], rest: list[str]) -> list[Any]:
    path = ".".join(step.replace(".", "\\.") for step in rest)
    found = (lookup(item, path, MISSING) for item in items)
    return [each for each in found if each is not MISSING]


def _steps(path: str) -> list[str]:
    """Split at dots that have no backslash before them."""
    return [re.sub(r"\\(.)", r"\1", step) for step in re.findall(r"(?:\\.|[^.\\])+", path, re.DOTALL)]


def _match(pattern: str, keys: Mapping[str, Any]) -> str | None:
    expression = re.compile("".join({"*": ".*?", "?": "."}.get(each, re.escape(each)) for each in pattern), re.DOTALL)
    return next((key for key in keys if expression.fullmatch(key)), None)


def shown(value: Any) -> str:
    """Return a value as a template prints it: texts as they are, lists and objects as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e21:
        return str(int(value))
    return json.dumps(value, default=str) if value is not None else "<no value>"


def _text(value: Any) -> str:
    if isinstance(value, dict | list) or value is None:
        raise ValueError(f"a text is needed, not {shown(value)[:40]}")
    return shown(value)


def _join(separator_or_items: Any, items_or_separator: Any) -> str:
    # The original's function takes the list first.
    items, separator = separator_or_items, items_or_separator
    if not isinstance(items, list):
        items, separator = separator, items
    if not isinstance(items, list):
        raise ValueError("a list is needed")
    return _text(separator).join(shown(item) for item in items)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "lookup": lookup,
    "o": lookup,
    "Title": lambda text: _text(text).title(),
    "Capitalize": lambda text: _text(text)[:1].upper() + _text(text)[1:],
    "ToLower": lambda text: _text(text).lower(),
    "ToUpper": lambda text: _text(text).upper(),
    "StringsJoin": _join,
    "StringJoin": _join,
    "Base64Encode": lambda text: base64.b64encode(_text(text).encode()).decode(),
    "Base64Decode": lambda text: base64.b64decode(_text(text), validate=True).decode(),
}
"""Functions of templates; `o` looks into the overrides of checks."""
