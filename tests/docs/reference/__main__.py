"""Writes the generated pages of the reference, or lists those that are out of date and ends with 1."""

from __future__ import annotations

import sys

from tests.docs.reference import pages, stale

if sys.argv[1:] == ["--write"]:
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
else:
    found = stale()
    for path in found:
        print(f"{path.name} is out of date: run `make reference`")
    sys.exit(1 if found else 0)
