"""A configuration file, from its name to `ServerOptions`."""

import os

import msgspec

from jetlake.server.configuration.digest import digest_of
from jetlake.server.configuration.document import ConfigurationNode
from jetlake.server.configuration.parser import parse_file, parse_text
from jetlake.server.configuration.section import Problems
from jetlake.server.configuration.top_level import read_options
from jetlake.server.options.server import ServerOptions


class Configuration(msgspec.Struct, frozen=True):
    """What a file said. `warnings` are lines for the operator; `digest` changes when the content does."""

    options: ServerOptions
    digest: str
    warnings: tuple[str, ...]


def load(config: str | os.PathLike[str]) -> Configuration:
    """Read a file, or a text: what no file is called and no file name looks like. Raises `ConfigurationError`."""
    name = os.fspath(config)
    is_text = isinstance(config, str) and any(mark in name for mark in "\n{:=") and not os.path.isfile(name)
    return load_text(name) if is_text else load_file(name)


def load_file(path: str) -> Configuration:
    """Read a file. Raises `ConfigurationError` with a line for every mistake."""
    return _load(parse_file(path), path)


def load_text(text: str) -> Configuration:
    """Read a configuration given as text; its includes are relative to the current folder."""
    return _load(parse_text(text), "")


def _load(document: ConfigurationNode, name: str) -> Configuration:
    problems = Problems()
    options = read_options(document, problems)
    problems.check()
    warnings = list(problems.warnings)
    if not document.data:
        warnings.append(f"{name or 'the text'}: config has no values or is empty")
    return Configuration(options, digest_of(document), tuple(warnings))
