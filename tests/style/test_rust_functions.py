"""Functions of the engine are short and take few arguments, as those of the Python half do."""

import re

LINES_MAX = 70
ARGUMENTS_MAX = 6

EXCEPTIONS = {
    "connection/worker/mod.rs::read_commands": "one arm for each command to a worker",
    "consumer/delivery/delivering.rs::deliver": "one pass: everything that may end it, in nats-server's order",
    "consumer/delivery/delivering.rs::deliver_new": "a message, and everything a delivery of it needs",
    "consumer/delivery/delivering.rs::send": "one delivery, with its reply subject, headers and counters",
    "engine.rs::listening": "the parts of an engine, made one after another",
    "load/workload.rs::run": "starts, measures and ends the threads of one load",
    "routing/onward.rs::send_answer": "a publish with all that belongs to it",
    "routing/onward.rs::send_request": "a request on its way to another account, step by step",
    "storage/check/report.rs::words": "one sentence for each finding",
    "storage/segment/loading.rs::read_records": "one arm for each kind of record",
    "storage/segment/scan.rs::scan": "one walk over a file, with every way it can be damaged",
    "storage/segment/sealing.rs::footer": "the fields of a footer in their order",
    "storage/store/assembling.rs::add_segment": "what one segment changes, in the order in which it must happen",
    "storage/store/opening.rs::build": "opening after a crash, step by step; cut up, the order would be lost",
    "storage/store/opening.rs::recover_tail": "every way in which the last segment can end",
    "storage/store/rewriting.rs::rewrite": "what is durable after which step; cut up, the order would be lost",
    "stream/archive/restore.rs::new": "everything a restore is known by",
    "stream/batch/atomic_batches.rs::accept": "the checks of a batch, in nats-server's order",
    "stream/definition.rs::read": "one line for each field of a definition",
    "stream/publish/checks.rs::check": "the checks of a publish, in nats-server's order",
    "stream/stream.rs::new": "the parts of a stream, made one after another",
}
"""Longer functions, or with more arguments, each with the reason."""


def functions(source: str):
    """Yield name, number of lines and number of arguments of each function of a Rust file, tests aside."""
    code = re.split(r"#\[cfg\(test\)\]\n(?:#\[[^\n]*\]\n)*mod \w+ \{", source)[0]
    lines = code.splitlines()
    for start, line in enumerate(lines):
        found = re.match(r"(\s*)(?:pub(?:\([^)]*\))? )?(?:const )?(?:unsafe )?fn (\w+)", line)
        if found is None:
            continue
        end = start
        while end < len(lines) and lines[end] != found.group(1) + "}":
            is_declaration = lines[end].rstrip().endswith(";") and "{" not in "".join(lines[start : end + 1])
            if is_declaration or (end == start and line.rstrip().endswith("}")):
                break
            end += 1
        signature = "".join(lines[start : end + 1]).partition("{")[0]
        arguments = re.findall(r"[(,]\s*(?:mut )?(\w+): ", signature)
        yield found.group(2), end - start + 1, len(arguments)


def test_functions_of_the_engine_are_short_and_take_few_arguments(tree):
    wrong = []
    used = set()
    for path in tree.under("crates/engine/src", suffix=".rs"):
        if path.endswith(("_tests.rs", "state_pair.rs", "test_certificates.rs")):
            continue
        for name, lines, arguments in functions(tree.read(path)):
            key = f"{path.removeprefix('crates/engine/src/')}::{name}"
            if lines > LINES_MAX + 2 or arguments > ARGUMENTS_MAX:
                used.add(key)
                if key not in EXCEPTIONS:
                    wrong.append(f"{key}: {lines} lines, {arguments} arguments")

    assert not wrong, "split it, pass one value instead of many, or give the reason above:\n" + "\n".join(wrong)
    assert used == set(EXCEPTIONS), f"no longer exceptions: {sorted(set(EXCEPTIONS) - used)}"


def test_functions_are_measured():
    source = "pub fn one(\n    first: u8,\n    second: &[u8],\n) -> u8 {\n    first\n}\n\nfn two(&self) {}\n"

    assert list(functions(source)) == [("one", 6, 2), ("two", 1, 0)]
