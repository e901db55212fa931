"""Two configurations as the tools of 2020 compared them: what differs, the fields beside it, and how many more.

```text
  server.StreamConfig{
        ... // 3 identical fields
        MaxMsgs:      -1,
-       MaxBytes:     -1,
+       MaxBytes:     10737418240,
        ... // 6 identical fields
  }
```
"""

NEIGHBOURS = 2
"""Fields that are shown before and after one that differs."""

_INDENT = " " * 7

Fields = list[tuple[str, str]]


def struct_diff(type_name: str, old: Fields, new: Fields) -> str:
    """Return the difference, or an empty text where there is none. Both have the same fields in the same order."""
    differs = [before != after for before, after in zip(old, new, strict=True)]
    if not any(differs):
        return ""
    changed = [number for number, is_changed in enumerate(differs) if is_changed]
    shown = {
        number
        for middle in changed
        for number in range(max(middle - NEIGHBOURS, 0), min(middle + NEIGHBOURS, len(old) - 1) + 1)
    }
    lines = [f"  {type_name}{{"]
    number = 0
    while number < len(old):
        run = number
        while run < len(old) and (run in shown) == (number in shown):
            run += 1
        if number in shown:
            lines += _fields(old[number:run], new[number:run])
        else:
            count = run - number
            lines.append(f" {_INDENT}... // {count} identical field{'' if count == 1 else 's'}")
        number = run
    return "\n".join([*lines, "  }"])


def _fields(old: Fields, new: Fields) -> list[str]:
    width = max(len(name) for name, _ in old) + 1
    lines = []
    for (name, before), (_, after) in zip(old, new, strict=True):
        key = f"{name}:".ljust(width)
        if before == after:
            lines.append(f" {_INDENT}{key} {before},")
        else:
            lines += [f"-{_INDENT}{key} {before},", f"+{_INDENT}{key} {after},"]
    return lines
