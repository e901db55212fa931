"""Names of the engine: a type name means one thing in the whole of it, and no word of our own stands for a term."""

import re

PRIVATE_WORDS = {
    "belongings": "context",
    "hungry": "has_demand",
    "inflow": "replication",
    "keeper": "scheduler",
    "loose_ends": "effects",
    "patience": "timeout",
    "rhythm": "pace",
    "stranger": "unauthenticated",
    "surroundings": "context",
    "tailored": "tail",
    "unheard": "undelivered",
    "upkeep": "maintenance",
    "whereabouts": "location",
}
"""Words that were private to this project, and what to say instead."""


def code_of(source: str) -> str:
    """Return a Rust file without its tests and comments."""
    code = re.split(r"#\[cfg\(test\)\]\n(?:#\[[^\n]*\]\n)*mod \w+ \{", source)[0]
    return re.sub(r"//[^\n]*", "", code)


def engine_files(tree):
    return [
        path
        for path in tree.under("crates/engine/src", suffix=".rs")
        if not path.endswith(("_tests.rs", "test_certificates.rs", "state_pair.rs"))
    ]


def test_type_names_are_unique_in_the_engine(tree):
    places: dict[str, list[str]] = {}
    for path in engine_files(tree):
        for name in re.findall(
            r"^\s*(?:pub(?:\([^)]*\))? )?(?:struct|enum|trait) (\w+)", code_of(tree.read(path)), re.MULTILINE
        ):
            places.setdefault(name, []).append(path)

    wrong = [f"{name}: {', '.join(paths)}" for name, paths in sorted(places.items()) if len(paths) > 1]
    assert not wrong, "name each after what it is there, such as `OutboxState`:\n" + "\n".join(wrong)


def test_no_private_word_is_a_name_in_the_engine(tree):
    wrong = []
    for path in engine_files(tree):
        code = re.sub(r'"(?:\\.|[^"\\])*"', "", code_of(tree.read(path)))
        for word, instead in PRIVATE_WORDS.items():
            if re.search(rf"(?i)(?:\b|_){word}s?(?:\b|_)", code):
                wrong.append(f"{path}: say {instead}, not {word}")

    assert not wrong, "\n".join(wrong)
