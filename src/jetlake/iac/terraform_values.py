"""The values of Terraform's variables: where they come from, and what their texts mean.

| place; a later one wins                                        | is read as                                     |
|----------------------------------------------------------------|------------------------------------------------|
| `default` of the variable's block                              | an expression                                  |
| `TF_VAR_name` of the environment                               | text if the type is string, number or bool, or |
|                                                                | if there is none; else an expression           |
| `terraform.tfvars`, then `terraform.tfvars.json`               | expressions, or JSON                           |
| `*.auto.tfvars` and `*.auto.tfvars.json`, in the order of names | the same                                       |
| `--var name=value`                                             | as in the environment                          |

Invariant: a value from outside the `.tf` files refers to nothing inside them.
"""

from collections.abc import Mapping
from pathlib import PurePath

from jetlake.errors import ConfigurationError
from jetlake.iac.hcl import evaluate, read_attributes, read_expression
from jetlake.iac.hcl_tokens import Token
from jetlake.iac.json_text import read_json
from jetlake.located.nodes import Node, SourceLocation, refusal

_MAIN_FILES = ("terraform.tfvars", "terraform.tfvars.json")
_OTHER_ENDINGS = (".auto.tfvars", ".auto.tfvars.json")
_PLAIN_TYPES = ("string", "number", "bool")


def is_values_file(name: str) -> bool:
    """Return whether Terraform reads values of variables from a file of this name by itself."""
    return name in _MAIN_FILES or name.endswith(_OTHER_ENDINGS)


def second_of_a_name(name: str, location: SourceLocation, first: SourceLocation) -> ConfigurationError:
    """Return the error that says two places of which Terraform, which reads one folder at a time, would see one."""
    return refusal(location, f"{name} stands twice: at {first} too; rename one, or read the folders one at a time")


class Values:
    """The values that variables have from outside."""

    def __init__(self, files: Mapping[str, str], given: Mapping[str, str], environment: Mapping[str, str]) -> None:
        self._given = given
        self._environment = environment
        self.of_files: dict[str, Node] = {}
        folders: dict[str, dict[str, Node]] = {}
        for file in sorted(files, key=_rank):
            folder, _ = _folder_and_name(file)
            folders.setdefault(folder, {}).update(_read_file(files[file], file))
        for values in folders.values():
            for name, node in values.items():
                if name in self.of_files:
                    raise second_of_a_name(name, node.location, self.of_files[name].location)
                self.of_files[name] = node

    def find(self, name: str, kind: list[Token] | None, location: SourceLocation) -> Node | None:
        """Return the value of a variable; `kind` is what its block says as its type."""
        if name in self._given:
            return _from_text(self._given[name], f"--var {name}", kind, location)
        if name in self.of_files:
            return self.of_files[name]
        key = f"TF_VAR_{name}"
        return _from_text(self._environment[key], key, kind, location) if key in self._environment else None


def _from_text(text: str, origin: str, kind: list[Token] | None, location: SourceLocation) -> Node:
    if kind is not None and not _is_plain(kind):
        words = read_expression(text, SourceLocation(origin, 1))
        if not words:
            raise refusal(SourceLocation(origin), "the value is empty: write [] for an empty list")
        return evaluate(words, _refuse_reference)
    if kind is None and text.lstrip().startswith(("[", "{")):
        # Terraform takes this for text, and then refuses it where a list is wanted; here a text is a list of one.
        wanted = "list(string)" if text.lstrip().startswith("[") else "map(string)"
        raise refusal(
            location,
            f"{origin} is {text!r}, and the variable has no type: write `type = {wanted}`, "
            "or `type = string` if the text itself is meant",
        )
    return Node(text, location)


def _is_plain(kind: list[Token]) -> bool:
    """Return whether a type is one whose values are plain text; before 2019 types stood between quotation marks."""
    first = kind[0]
    word = "".join(map(str, first.value)) if first.kind == "text" else first.value
    return len(kind) == 1 and word in _PLAIN_TYPES


def _read_file(source: str, file: str) -> dict[str, Node]:
    if file.endswith(".json"):
        return read_json(source, file)[0].mapping
    return {
        name: evaluate(words, _refuse_reference).at(words[0].location)
        for name, words in read_attributes(source, file).items()
    }


def _refuse_reference(path: list[str], location: SourceLocation) -> Node:
    raise refusal(
        location,
        f"{'.'.join(path)} stands in a value from outside: write the value itself, and texts between quotation marks",
    )


def _rank(file: str) -> tuple[str, int, str]:
    folder, name = _folder_and_name(file)
    return folder, _MAIN_FILES.index(name) if name in _MAIN_FILES else len(_MAIN_FILES), name


def _folder_and_name(file: str) -> tuple[str, str]:
    path = PurePath(file)
    return str(path.parent), path.name
