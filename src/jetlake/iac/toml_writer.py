"""Writes a declaration as TOML: settings first, then one table per thing.

Only what declarations hold is written: texts, numbers, flags, lists and mappings.
"""

import re
from typing import Any

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def write_toml(document: dict[str, Any]) -> str:
    """Return the document as text."""
    settings = [f"{_key(key)} = {_value(value)}\n" for key, value in document.items() if not _is_tables(value)]
    tables = [text for key, value in document.items() if _is_tables(value) for text in _tables((key,), value)]
    return "\n".join(("".join(settings), *tables) if settings else tables)


def _tables(path: tuple[str, ...], items: list[dict[str, Any]]) -> list[str]:
    found = []
    for item in items:
        lines = [f"[[{'.'.join(_key(part) for part in path)}]]\n"]
        lines += [f"{_key(key)} = {_value(value)}\n" for key, value in item.items() if not _is_tables(value)]
        found.append("".join(lines))
        for key, value in item.items():
            if _is_tables(value):
                found += _tables((*path, key), value)
    return found


def _is_tables(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, dict) for item in value)


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _text(name)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, list):
        return f"[{', '.join(_value(item) for item in value)}]"
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{_key(key)} = {_value(inner)}' for key, inner in value.items())} }}"
    return _text(str(value))


def _text(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", escaped) + '"'
