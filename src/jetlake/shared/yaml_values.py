"""A YAML text as plain values, with one error for all that can be wrong with it.

Files whose values need their lines, for errors that name them, are read by `jetlake.located.yaml_text`.
"""

from typing import Any


class YamlError(ValueError):
    """Is raised for a text that is not YAML. `line` and `column` count from 1; None = unknown."""

    def __init__(self, text: str, problem: str = "", line: int | None = None, column: int | None = None) -> None:
        super().__init__(text)
        self.problem = problem
        self.line = line
        self.column = column


def load_yaml(text: str) -> Any:
    """Return the value of a YAML text. Raises `YamlError`, and `ImportError` where the reader is not installed."""
    # Only programs with a file in YAML pay for loading it.
    import yaml

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise YamlError(
            " ".join(str(error).split()),
            getattr(error, "problem", None) or "",
            None if mark is None else mark.line + 1,
            None if mark is None else mark.column + 1,
        ) from error
    except RecursionError as error:
        raise YamlError(" ".join(str(error).split())) from error
