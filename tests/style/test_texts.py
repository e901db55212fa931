"""What no file may contain, and what every module must begin with."""

import ast
import re
import socket

from tests.python_source import parse_python

# Put together from pieces, so that this file does not contain what it looks for.
MACHINE_PATHS = re.compile("|".join(rf"(?<![\w.~-])/{folder}/" for folder in ("wo" + "rk", "ro" + "ot", "ho" + "me")))
NOTES = re.compile("|".join(rf"\b{word}\b" for word in ("TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK")))
PACKAGE_SOURCES = re.compile(
    "|".join(["--(?:extra-)?index-" + "url", "trusted-" + "host", r"registry\s*=\s*" + '"http', "GO" + "PROXY="])
)

TIMED_ASSERTION = re.compile(r"\bassert\b.*\b(?:monotonic|perf_counter|time)\(\) - [^<]*<(?! *deadline)")
"""An upper bound on how long something took. Deadlines of waiting loops are compared without a difference."""

SHORTEST_TELLING_NAME = 8
"""A machine called `ci` or `localhost` would be found in every file; a name like this one is no accident."""


def lines_matching(tree, pattern, paths=None):
    return [
        f"{path}:{number}: {line.strip()[:100]}"
        for path in (tree.paths if paths is None else paths)
        for number, line in enumerate(tree.read(path).splitlines(), 1)
        if pattern.search(line)
    ]


def test_no_file_names_a_path_of_one_machine(tree):
    wrong = lines_matching(tree, MACHINE_PATHS)

    assert not wrong, "use a path relative to the repository, or a temporary folder:\n" + "\n".join(wrong)


def test_no_file_names_this_machine(tree):
    name = socket.gethostname()
    if len(name) < SHORTEST_TELLING_NAME or name == "localhost":
        return

    wrong = lines_matching(tree, re.compile(rf"\b{re.escape(name)}\b"))

    assert not wrong, "use 127.0.0.1, or example.com in documentation:\n" + "\n".join(wrong)


def test_no_file_says_where_packages_come_from(tree):
    wrong = lines_matching(tree, PACKAGE_SOURCES)

    assert not wrong, "leave it to the configuration of the machine that builds:\n" + "\n".join(wrong)


def test_no_notes_are_left_in_the_code(tree):
    wrong = lines_matching(tree, NOTES)

    assert not wrong, "do it now, or open an issue and remove the note:\n" + "\n".join(wrong)


def test_every_python_module_says_what_it_is(tree):
    wrong = [
        path
        for path in tree.under("src", "tests", "benchmarks", "examples", suffix=".py")
        if not ast.get_docstring(parse_python(tree.read(path)))
    ]

    assert not wrong, "begin with a docstring: what it is, why, its invariant:\n" + "\n".join(wrong)


def test_every_rust_module_says_what_it_is(tree):
    wrong = [path for path in tree.under("crates", suffix=".rs") if not begins_with_its_purpose(tree.read(path))]

    assert not wrong, "begin with a //! comment: what it is, why, its invariant:\n" + "\n".join(wrong)


def begins_with_its_purpose(source: str) -> bool:
    # Inner attributes such as #![no_main] must come before everything else in some files.
    first = next((line for line in source.splitlines() if line.strip() and not line.startswith("#![")), "")
    return first.startswith("//!")


def test_every_package_of_ours_is_a_package(tree):
    folders = {path.rpartition("/")[0] for path in tree.under("src/jetlake", suffix=".py")}

    wrong = [folder for folder in sorted(folders) if f"{folder}/__init__.py" not in tree.paths]

    assert not wrong, "add an __init__.py whose docstring lists the modules:\n" + "\n".join(wrong)


def test_documentation_of_a_package_lists_its_modules(tree):
    wrong = []
    for path in tree.under("src/jetlake", suffix="/__init__.py"):
        folder = path.rpartition("/")[0]
        docstring = ast.get_docstring(parse_python(tree.read(path))) or ""
        for module in tree.under(folder, suffix=".py"):
            name = module.removeprefix(f"{folder}/").split("/")[0].removesuffix(".py")
            if not name.startswith("__") and f"`{name}`" not in docstring:
                wrong.append(f"{path}: `{name}`")

    assert not sorted(set(wrong)), "name each module in the docstring, with one sentence:\n" + "\n".join(
        sorted(set(wrong))
    )


def test_the_patterns_find_what_they_look_for():
    assert MACHINE_PATHS.search("open('/wo" + "rk/main')")
    assert MACHINE_PATHS.search("cd /ho" + "me/ada/project")
    assert not MACHINE_PATHS.search("a/wo" + "rk/b and ~/ho" + "me/b")
    assert NOTES.search("# TO" + "DO: later")
    assert PACKAGE_SOURCES.search("pip install --index-" + "url=x")


def test_no_test_asserts_how_fast_the_machine_is(tree):
    wrong = lines_matching(tree, TIMED_ASSERTION, tree.under("tests", suffix=".py"))

    assert not wrong, "wait for what should happen, or count the effort with `tests.effort`:\n" + "\n".join(wrong)
