"""Reads files and folders of any format into one declaration.

| ending                | read as                                                       |
|-----------------------|---------------------------------------------------------------|
| `.yaml` `.yml` `.json`| Jetlake's own format, Kubernetes manifests, the API's own JSON |
| `.toml`               | Jetlake's own format                                          |
| `.tf`                 | Terraform                                                     |
| `.tfvars`             | values for Terraform's variables, with the names it knows     |
| `.py`                 | Python, only when the file itself is named                    |

`@choria_streams` is a declaration that comes with Jetlake; all of them are in the folder `shipped`.

All files of one command are one declaration: defaults and variables count for all of them, whichever file says them.
"""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from jetlake.errors import ConfigurationError, reason_of
from jetlake.iac import kubernetes, native
from jetlake.iac.declaration import Declaration
from jetlake.iac.fields import word_of
from jetlake.iac.json_text import read_json
from jetlake.iac.python_files import read_python
from jetlake.iac.terraform import read_terraform
from jetlake.iac.terraform_values import is_values_file
from jetlake.iac.toml_text import read_toml
from jetlake.iac.variables import Variables
from jetlake.located.nodes import FILE_BYTES_MAX, Node, SourceLocation, refusal
from jetlake.located.yaml_text import read_yaml
from jetlake.suggestions import hint

READERS = {".yaml": read_yaml, ".yml": read_yaml, ".json": read_json, ".toml": read_toml}
TERRAFORM = ".tf"
PYTHON = ".py"

SHIPPED = Path(__file__).parent / "shipped"
SHIPPED_MARK = "@"
"""Before the name of a declaration that comes with the package."""

FILES_MAX = 10_000
"""Files of one folder; with more, the user has probably named the wrong folder."""


def read(
    paths: Iterable[Path], given: Mapping[str, str] | None = None, environment: Mapping[str, str] | None = None
) -> Declaration:
    """Return what files and folders declare. `given` are the variables of the command line.

    Raises `ConfigurationError` with file and line of whatever is wrong.
    """
    given = given or {}
    environment = os.environ if environment is None else environment
    documents: list[Node] = []
    terraform: list[Path] = []
    values: set[Path] = set()
    for path in _files(paths):
        if path.suffix == PYTHON:
            documents += read_python(str(path))
        elif path.suffix == TERRAFORM:
            terraform.append(path)
            values |= {other for other in path.parent.iterdir() if is_values_file(other.name)}
        elif is_values_file(path.name):
            values.add(path)
        else:
            documents += READERS[path.suffix](_text(path), str(path))
    declaration = Declaration()
    _read_documents(documents, declaration, given, environment)
    if terraform:
        sources = {str(path): _text(path) for path in (*terraform, *sorted(values))}
        read_terraform(sources, declaration, given, environment)
    return declaration


def read_text(text: str, name: str, given: Mapping[str, str] | None = None) -> Declaration:
    """Return what one text declares, such as one that was sent over a network; `name` says its format by its ending.

    It sees no file and no variable of the environment, and cannot be a program. Raises `ConfigurationError`.
    """
    suffix = Path(name).suffix.lower()
    if suffix not in READERS:
        raise ConfigurationError(f"{name} cannot be read: its name must end in {', '.join(READERS)}")
    declaration = Declaration()
    _read_documents(READERS[suffix](text, name), declaration, given or {}, {})
    return declaration


def _read_documents(
    documents: list[Node], declaration: Declaration, given: Mapping[str, str], environment: Mapping[str, str]
) -> None:
    manifests = [node for node in documents if kubernetes.is_manifest(node)]
    own = [node for node in documents if not kubernetes.is_manifest(node)]
    variables = Variables(given, environment, _declared_variables(own))
    filled = [variables.fill(node) for node in own]
    defaults = native.Defaults()
    for node in filled:
        for key, child in node.mapping.items():
            if word_of(key) == "defaults":
                defaults.read(child)
            elif word_of(key) == "project":
                _set_project(declaration, child)
    for node in filled:
        native.read_document(node, declaration, defaults)
    for node in manifests:
        kubernetes.read_manifest(node, declaration)


def _declared_variables(documents: list[Node]) -> dict[str, str]:
    found: dict[str, str] = {}
    for node in documents:
        for key, child in node.mapping.items():
            if word_of(key) != "variables":
                continue
            for name, value in child.mapping.items():
                if isinstance(value.value, list | dict) or value.value is None:
                    raise refusal(value.location, f"the variable {name} must be text or a number")
                if found.setdefault(name, value.as_text) != value.as_text:
                    raise refusal(
                        value.location, f"the variable {name} is given twice, differently: remove one of them"
                    )
    return found


def _set_project(declaration: Declaration, node: Node) -> None:
    if declaration.project and declaration.project != node.text:
        raise refusal(
            node.location, f"the project is {node.text!r} here and {declaration.project!r} elsewhere: keep one of them"
        )
    declaration.project = node.text


def _files(paths: Iterable[Path]) -> list[Path]:
    found: list[Path] = []
    for path in paths:
        if str(path).startswith(SHIPPED_MARK):
            found.append(_shipped(str(path).removeprefix(SHIPPED_MARK)))
        elif path.is_dir():
            found += _files_of_folder(path)
        elif path.suffix in (*READERS, TERRAFORM, PYTHON):
            found.append(path)
        elif path.exists():
            raise ConfigurationError(
                f"{path} cannot be read: its name must end in {', '.join((*READERS, TERRAFORM, PYTHON))}"
            )
        else:
            raise ConfigurationError(f"{path} is not there: give a file or a folder with declarations")
    return list(dict.fromkeys(found))


def _shipped(name: str) -> Path:
    there = {path.stem: path for path in sorted(SHIPPED.glob("*.yaml"))}
    if name not in there:
        raise ConfigurationError(f"no declaration @{name} comes with Jetlake{hint(name, there)}")
    return there[name]


def _files_of_folder(folder: Path) -> list[Path]:
    found = sorted(
        path
        for path in folder.rglob("*")
        if (path.suffix in (*READERS, TERRAFORM) or is_values_file(path.name))
        and path.is_file()
        and not _is_hidden(path.relative_to(folder))
    )
    if len(found) > FILES_MAX:
        raise ConfigurationError(f"{folder} holds {len(found):,} files: at most {FILES_MAX:,} are read")
    if all(is_values_file(path.name) for path in found):
        raise ConfigurationError(
            f"{folder} holds no declarations: write files that end in {', '.join((*READERS, TERRAFORM))}"
        )
    return found


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def _text(path: Path) -> str:
    try:
        size = path.stat().st_size
        if size > FILE_BYTES_MAX:
            raise refusal(
                SourceLocation(str(path)), f"the file has {size:,} bytes: at most {FILE_BYTES_MAX:,} are read"
            )
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise refusal(SourceLocation(str(path)), f"the file cannot be read: {reason_of(error)}") from error
    except UnicodeDecodeError:
        raise refusal(SourceLocation(str(path)), "the file is not UTF-8 text") from None
