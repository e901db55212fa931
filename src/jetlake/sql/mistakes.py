"""What is wrong with a query, in one sentence with what to do: DuckDB's texts, shortened, with the nearest name."""

import re
from collections.abc import Sequence

from jetlake.suggestions import nearest

__all__ = ["sentence"]

KIND = re.compile(r"^(?:[A-Z][A-Za-z-]* )+Error: ")
COLUMN = re.compile(r'(?:Referenced column|does not have a column named|Referenced table) "([^"]+)"')
CANDIDATES = re.compile(r"(?:Candidate bindings|Candidate Entries|Candidate tables?): (.+)")
QUOTED = re.compile(r'"([^"]+)"')
POINTER = re.compile(r"LINE \d+: .*\n *\^", re.DOTALL)
MISSING_FILE = re.compile(r'No files found that match the pattern "([^"]+)"')


def sentence(text: str, columns: Sequence[str] = ()) -> str:
    """Return what DuckDB says of a mistake, without its kind and without what only its authors need.

    `columns` are those a missing one may be meant for, where DuckDB names none.
    """
    said = KIND.sub("", text.strip())
    if (column := _missing_column(said, columns)) is not None:
        return column
    if (file := MISSING_FILE.search(said)) is not None:
        return f"there is no file {file[1]}"
    first = said.split("\n\n", maxsplit=1)[0].replace("\n", " ").strip()
    pointer = POINTER.search(said)
    return f"{first}\n{pointer[0]}" if pointer else first


def _missing_column(said: str, columns: Sequence[str]) -> str | None:
    found = COLUMN.search(said)
    if found is None:
        return None
    wanted = found[1]
    listed = CANDIDATES.search(said)
    there = [name.rpartition(".")[2] for name in QUOTED.findall(listed[1])] if listed else list(columns)
    near = nearest(wanted, there)
    what = "table" if found[0].startswith("Referenced table") else "column"
    if near:
        return f"there is no {what} {wanted}; did you mean {near}?"
    return f"there is no {what} {wanted}" + (f"; there are {', '.join(dict.fromkeys(there))}" if there else "")
