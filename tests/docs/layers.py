"""The picture of the layers in `docs/internals/index.md`, drawn from the imports of the code.

```sh
python -m tests.docs.layers --write   # put it into the page; `make reference` does it too
python -m tests.docs.layers           # end with 1 if the page is out of date
```
"""

from __future__ import annotations

import sys

from tests.docs.pages import REPOSITORY
from tests.style.layers import ENGINE, PYTHON, PYTHON_LISTS, Layers, picture, python_edges, rust_edges

PAGE = REPOSITORY / "docs" / "internals" / "index.md"

BEGIN = "<!-- made by `make reference` from the imports: change tests/style/layers.py instead -->"
END = "<!-- end of the layers -->"


def drawn() -> str:
    """Return what stands between the two marks: the lists, highest layer first, and a picture of each half."""
    lists = "\n\n".join(_list(layers) for layers in (ENGINE, *PYTHON_LISTS))
    pictures = [picture(ENGINE, rust_edges(ENGINE.root)), picture(PYTHON, python_edges(PYTHON.root))]
    drawings = "\n\n".join(f"```mermaid\n{each}\n```" for each in pictures)
    return f"{BEGIN}\n\n{lists}\n\n{drawings}\n\n{END}"


def page() -> str:
    """Return the page as it should be."""
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, mark, after = rest.partition(END)
    assert mark, f"{PAGE} has lost the marks around the picture: put {BEGIN} and {END} back"
    return before + drawn() + after


def _list(layers: Layers) -> str:
    rows = [
        f"| {layer.name} | {', '.join(f'`{part}`' for part in sorted(layer.parts))} |"
        for layer in reversed(layers.layers)
    ]
    return "\n".join([f"| layer | parts of `{layers.root}` |", "|---|---|", *rows])


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        PAGE.write_text(page(), encoding="utf-8")
    elif page() != PAGE.read_text(encoding="utf-8"):
        print(f"{PAGE.name} is out of date: run `make reference`")
        sys.exit(1)
