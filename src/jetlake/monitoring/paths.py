"""Paths of pages, tidied."""


def normal_base_path(base_path: str) -> str:
    """Return it with a slash before and none after; empty when it is only the root."""
    stripped = base_path.strip("/")
    return f"/{stripped}" if stripped else ""


def clean_path(path: str) -> str:
    """Return a path without empty, `.` and `..` parts; a slash at its end stays."""
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            del parts[-1:]
        elif part not in {"", "."}:
            parts.append(part)
    clean = f"/{'/'.join(parts)}"
    return f"{clean}/" if path.endswith("/") and parts else clean
