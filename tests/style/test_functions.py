"""Functions are short and take few arguments.

Counted are the lines of the body, and the arguments that every caller must give: an option with a default and a name of
its own costs a caller nothing. A command of the command line has one argument for each flag.
"""

import ast
import functools

from tests.python_source import nodes_of

LINES_MAX = 70
ARGUMENTS_MAX = 6

EXCEPTIONS = {
    "choria/envelopes.py::_make_request_2": "the fields of the older envelope, which `make_request` has checked",
    "choria/events.py::transition_body": "the fields of an event, each named by the caller",
    "cli/bench.py::make_plan": "the flags of `jetlake bench`",
    "cli/sub.py::stored": "the flags of `jetlake sub` that are about streams",
    "governor/lease.py::Lease.__init__": "everything a slot is known by, each named by the one caller",
    "server/callout/callout.py::Callout.__init__": "what the server does for it, each named by the one caller",
    "server/system/handler.py::Handler.__init__": "what the server does for it, one function each",
    "spark/lake/table.py::LakeTable._commit_rows": "rows, and the rule by which they replace others",
    "spark/lake/table.py::LakeTable.upsert": "rows, and the rule by which they replace others",
    "spark/lake/table.py::LakeTable.write_rows": "rows, and the rule by which they replace others",
    "sync/streams.py::publish": "one message, as `Client.publish` takes it apart",
}
"""Functions with more arguments, each with the reason."""


@functools.cache
def functions_of(source):
    """Return the functions of a module with their names; a method is named with its class."""
    return [
        (f"{owner.name}.{node.name}" if isinstance(owner, ast.ClassDef) else node.name, node)
        for owner in nodes_of(source)
        for node in ast.iter_child_nodes(owner)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def functions(tree):
    """Yield file and name of each function with its node."""
    for path in tree.under("src/jetlake", suffix=".py"):
        if not path.endswith("_pb2.py"):
            for name, node in functions_of(tree.read(path)):
                yield f"{path.removeprefix('src/jetlake/')}::{name}", node


def body_lines(node) -> int:
    return (node.end_lineno or 0) - node.body[0].lineno + 1


def required_arguments(node) -> list[ast.arg]:
    """Return what a caller must give, and what has a default but no name of its own in a call."""
    positional = [each for each in (*node.args.posonlyargs, *node.args.args) if each.arg not in ("self", "cls")]
    named = zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
    return positional + [each for each, default in named if default is None]


def is_command(name: str, node) -> bool:
    """Return whether a function is a command: its arguments are flags, each with its help text."""
    types = [ast.unparse(each.annotation) for each in (*node.args.args, *node.args.kwonlyargs) if each.annotation]
    flags = [each for each in types if "Annotated" in each or each.endswith(("Option", "Argument")) or "Named" in each]
    return name.startswith("cli/") and len(types) - len(flags) <= 1


def test_functions_are_short(tree):
    wrong = [f"{name}: {body_lines(node)} lines" for name, node in functions(tree) if body_lines(node) > LINES_MAX]

    assert not wrong, f"split them, at most {LINES_MAX} lines each:\n" + "\n".join(wrong)


def test_functions_take_few_arguments(tree):
    wrong = [
        f"{name}: {len(required_arguments(node))} arguments"
        for name, node in functions(tree)
        if len(required_arguments(node)) > ARGUMENTS_MAX and name not in EXCEPTIONS and not is_command(name, node)
    ]

    assert not wrong, (
        f"put what belongs together into one value, at most {ARGUMENTS_MAX} arguments each, or name the reason in "
        "tests/style/test_functions.py:\n" + "\n".join(wrong)
    )


def test_exceptions_are_needed(tree):
    found = {name: len(required_arguments(node)) for name, node in functions(tree)}

    assert [name for name in EXCEPTIONS if found.get(name, 0) <= ARGUMENTS_MAX] == []
