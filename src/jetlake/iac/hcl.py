"""HCL, the language of Terraform's files, as blocks whose attributes are values with lines.

What is read is what declarations need: blocks, texts with templates, numbers, lists, objects, arithmetic, `var`,
`local` and references to other blocks. Functions, conditions and loops are refused by name: a value that cannot
be known must not be guessed.

Invariant: a value that is returned does not depend on anything outside the file, except on the variables given.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from jetlake.iac.hcl_tokens import Expression, Token, tokens
from jetlake.located.nodes import DIGITS_MAX, Node, SourceLocation, refusal

DEPTH_MAX = 100
"""Blocks, brackets and references inside each other."""

LARGEST = 10**DIGITS_MAX
"""Of what is computed with: the square of a large number has twice the digits."""

Resolve = Callable[[list[str], SourceLocation], Node]
"""Returns the value of a reference such as `var.name`."""

_WORDS = {"true": True, "false": False, "null": None}
_SUMS = ("+", "-")
_PRODUCTS = ("*", "/", "%")
_NOT_READ = ("?", "==", "!=", "<", ">", "<=", ">=", "&&", "||", "!", "...")


@dataclass
class Block:
    """`kind "label" "label" { … }`; the attributes are not computed before they are asked for."""

    kind: str
    labels: list[str]
    location: SourceLocation
    attributes: dict[str, list[Token]] = field(default_factory=dict)
    blocks: "list[Block]" = field(default_factory=list)


def read_blocks(source: str, file: str) -> list[Block]:
    """Return the blocks of a file. Raises `ConfigurationError`."""
    body = Block("", [], SourceLocation(file, 1))
    reader = _BlockReader(tokens(source, file))
    reader.body(body, 0)
    if body.attributes:
        first = next(iter(body.attributes.values()))
        raise refusal(first[0].location, "a value stands outside of all blocks")
    return body.blocks


def read_attributes(source: str, file: str) -> dict[str, list[Token]]:
    """Return the values of a file that holds nothing else. Raises `ConfigurationError`."""
    body = Block("", [], SourceLocation(file, 1))
    _BlockReader(tokens(source, file)).body(body, 0)
    if body.blocks:
        first = body.blocks[0]
        raise refusal(first.location, f"a block {first.kind} stands where only values belong: write name = value")
    return body.attributes


def read_expression(source: str, location: SourceLocation) -> list[Token]:
    """Return the words of one expression, for `evaluate`."""
    found = tokens(source, location.file, location.line)
    return [word for word in found if word.kind not in ("line", "end")]


def evaluate(words: list[Token], resolve: Resolve) -> Node:
    """Return the value of an expression."""
    return _Evaluator(words, resolve).all()


class _BlockReader:
    def __init__(self, words: list[Token]) -> None:
        self._words = words
        self._position = 0

    def body(self, block: Block, depth: int) -> None:
        """Read until the closing bracket, or until the end of the file."""
        if depth > DEPTH_MAX:
            raise refusal(block.location, f"more than {DEPTH_MAX} blocks are inside each other")
        while True:
            token = self._next()
            if token.kind == "line" or (token.kind == "sign" and token.value == ","):
                continue
            if token.kind == "end" and depth == 0:
                return
            if token.kind == "sign" and token.value == "}" and depth > 0:
                return
            if token.kind == "end":
                raise refusal(block.location, f"the block {block.kind} never ends: write }}")
            if token.kind != "name":
                raise refusal(token.location, f"{_shown(token)} stands where a name belongs")
            self._statement(block, token, depth)

    def _statement(self, block: Block, name: Token, depth: int) -> None:
        if self._peek().value == "=" and self._peek().kind == "sign":
            self._next()
            if name.value in block.attributes:
                raise refusal(name.location, f"{name.value} stands twice in one block: remove one of them")
            block.attributes[name.value] = self._expression(name)
            return
        labels: list[str] = []
        while not (self._peek().kind == "sign" and self._peek().value == "{"):
            label = self._next()
            if label.kind == "text" and all(isinstance(piece, str) for piece in label.value):
                labels.append("".join(label.value))
            elif label.kind == "name":
                labels.append(label.value)
            else:
                raise refusal(label.location, f"after {name.value} there is neither = nor a block")
        self._next()
        inner = Block(name.value, labels, name.location)
        self.body(inner, depth + 1)
        block.blocks.append(inner)

    def _expression(self, name: Token) -> list[Token]:
        """Return the words up to the end of the line, or up to the bracket that closes the block."""
        words: list[Token] = []
        depth = 0
        while True:
            token = self._peek()
            is_closing = token.kind == "sign" and token.value in ")]}"
            if token.kind == "end" or (depth == 0 and (token.kind == "line" or is_closing)):
                break
            self._next()
            if token.kind == "sign":
                depth += (token.value in "([{") - is_closing
            if token.kind != "line":
                words.append(token)
        if not words:
            raise refusal(name.location, f"{name.value} has no value")
        return words

    def _peek(self) -> Token:
        return self._words[self._position]

    def _next(self) -> Token:
        token = self._words[self._position]
        self._position = min(self._position + 1, len(self._words) - 1)
        return token


class _Evaluator:
    """Computes one expression: sums of products of values."""

    def __init__(self, words: list[Token], resolve: Resolve, depth: int = 0) -> None:
        self._words = words
        self._resolve = resolve
        self._position = 0
        self._depth = depth
        self._end = Token("end", "", words[-1].location if words else SourceLocation(""))

    def all(self) -> Node:
        node = self._sum()
        token = self._peek()
        if token.kind != "end":
            self._refuse_rest(token)
        return node

    def _refuse_rest(self, token: Token) -> None:
        if token.kind == "sign" and token.value in _NOT_READ:
            raise refusal(
                token.location, f"conditions and comparisons ({token.value}) are not read: write the value itself"
            )
        raise refusal(token.location, f"{_shown(token)} stands where the value has ended")

    def _sum(self) -> Node:
        return self._chain(_SUMS, lambda: self._chain(_PRODUCTS, self._unary))

    def _chain(self, signs: tuple[str, ...], operand: Callable[[], Node]) -> Node:
        left = operand()
        while self._peek().kind == "sign" and self._peek().value in signs:
            sign = self._next()
            left = Node(_computed(left, sign, operand()), left.location)
        return left

    def _unary(self) -> Node:
        token = self._peek()
        if token.kind == "sign" and token.value == "-":
            self._next()
            operand = self._value()
            return Node(_computed(Node(0, operand.location), token, operand), token.location)
        return self._value()

    def _value(self) -> Node:
        token = self._next()
        match token.kind, token.value:
            case "number", text if len(text) > DIGITS_MAX:
                raise refusal(token.location, f"a number has more than {DIGITS_MAX} digits")
            case "number", text:
                return Node(_whole(float(text)) if set(text) & set(".eE") else int(text), token.location)
            case "text", pieces:
                return self._text(token, pieces)
            case "name", word if word in _WORDS and not self._continues():
                return Node(_WORDS[word], token.location)
            case "name", _:
                return self._reference(token)
            case "sign", "(":
                return self._nested(token, ")", self._sum)
            case "sign", "[":
                return self._nested(token, "]", self._list)
            case "sign", "{":
                return self._nested(token, "}", self._object)
            case _:
                pass
        if token.kind == "sign" and token.value in _NOT_READ:
            raise refusal(
                token.location, f"conditions and comparisons ({token.value}) are not read: write the value itself"
            )
        raise refusal(token.location, f"{_shown(token)} stands where a value belongs")

    def _nested(self, opening: Token, closing: str, inner: Callable[[], Node]) -> Node:
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise refusal(opening.location, f"more than {DEPTH_MAX} brackets are inside each other")
        node = inner()
        self._depth -= 1
        token = self._next()
        if not (token.kind == "sign" and token.value == closing):
            self._refuse_rest(token)
        return Node(node.value, opening.location)

    def _list(self) -> Node:
        children = []
        location = self._peek().location
        while not self._is_sign("]"):
            children.append(self._sum())
            if not self._is_sign(","):
                break
            self._next()
        return Node(children, location)

    def _object(self) -> Node:
        children: dict[str, Node] = {}
        location = self._peek().location
        while not self._is_sign("}"):
            key = self._next()
            name = key.value if key.kind == "name" else self._text(key, key.value).value if key.kind == "text" else None
            if not isinstance(name, str) or not (self._is_sign("=") or self._is_sign(":")):
                raise refusal(key.location, f"{_shown(key)} stands where a name with a value belongs")
            self._next()
            if name in children:
                raise refusal(key.location, f"{name} stands twice in one object: remove one of them")
            children[name] = self._sum()
            if self._is_sign(","):
                self._next()
        return Node(children, location)

    def _text(self, token: Token, pieces: list[str | Expression]) -> Node:
        values: list[Any] = []
        for piece in pieces:
            if isinstance(piece, str):
                values.append(piece)
                continue
            words = read_expression(piece.source, piece.location)
            if not words:
                raise refusal(piece.location, "a ${} has nothing in it")
            if self._depth > DEPTH_MAX:
                raise refusal(piece.location, f"more than {DEPTH_MAX} templates are inside each other")
            values.append(_Evaluator(words, self._resolve, self._depth + 1).all().value)
        filled = [value for value in values if value != ""]
        # "${var.count}" alone is the value itself, whatever its kind.
        if len(filled) == 1 and not isinstance(filled[0], str) and len(pieces) > 1:
            return Node(filled[0], token.location)
        if any(isinstance(value, list | dict) for value in filled):
            raise refusal(token.location, "a list or an object stands inside a text")
        return Node("".join(_written(value) for value in filled), token.location)

    def _reference(self, first: Token) -> Node:
        path = [first.value]
        if self._is_sign("("):
            raise refusal(first.location, f"functions ({first.value}) are not read: write the value itself")
        while self._is_sign("."):
            self._next()
            part = self._next()
            if part.kind not in ("name", "number"):
                raise refusal(part.location, f"{_shown(part)} stands where the name of an attribute belongs")
            path.append(str(part.value))
        if self._is_sign("["):
            raise refusal(first.location, f"{'.'.join(path)}[…] is not read: write the value itself")
        return Node(self._resolve(path, first.location).value, first.location)

    def _continues(self) -> bool:
        return self._is_sign(".") or self._is_sign("(")

    def _is_sign(self, sign: str) -> bool:
        token = self._peek()
        return token.kind == "sign" and token.value == sign

    def _peek(self) -> Token:
        return self._words[self._position] if self._position < len(self._words) else self._end

    def _next(self) -> Token:
        token = self._peek()
        self._position += 1
        return token


def _computed(left: Node, sign: Token, right: Node) -> int | float:
    one, other = _number(left, sign), _number(right, sign)
    if sign.value in ("/", "%") and other == 0:
        raise refusal(sign.location, "nothing can be divided by 0")
    if max(abs(one), abs(other)) > LARGEST:
        raise refusal(sign.location, "a number is larger than anything that is declared here")
    match sign.value:
        case "+":
            result = one + other
        case "-":
            result = one - other
        case "*":
            result = one * other
        case "%":
            result = one % other
        case _:
            result = (
                one // other if isinstance(one, int) and isinstance(other, int) and one % other == 0 else one / other
            )
    return _whole(result)


def _whole(number: float) -> int | float:
    """Return a number as Terraform has it: 1e3 is 1000, and written so."""
    return int(number) if isinstance(number, float) and number.is_integer() else number


def _number(side: Node, sign: Token) -> int | float:
    value = side.value
    # A variable that comes from outside is text.
    if isinstance(value, str) and value.removeprefix("-").isdecimal() and len(value) <= DIGITS_MAX:
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise refusal(side.location, f"{sign.value} needs numbers on both sides")
    return value


def _written(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)


def _shown(token: Token) -> str:
    if token.kind == "text":
        return "a text"
    return "the end of the file" if token.kind == "end" else repr(token.value)
