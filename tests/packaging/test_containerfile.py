"""The Containerfile, read line by line: no container engine is needed, and none is started.

What this finds: a file that is copied and not there, a stage that is not defined, a server that would run as root, a
command that the server does not take. What it does not find: a base image that is gone, a package that was renamed.
"""

from __future__ import annotations

import json
import re
import shlex
import tomllib

from jetlake.server.flags import FLAGS
from tests.conftest import REPOSITORY

TEXT = (REPOSITORY / "packaging" / "Containerfile").read_text()


def instructions() -> list[tuple[str, str]]:
    """Return the instructions with their arguments, lines that go on joined."""
    joined = re.sub(r"\\\n\s*", "", "\n".join(line for line in TEXT.splitlines() if not line.startswith("#")))
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in joined.splitlines() if line)]


def stages() -> list[list[tuple[str, str]]]:
    found: list[list[tuple[str, str]]] = []
    for instruction in instructions():
        if instruction[0] == "FROM":
            found.append([])
        found[-1].append(instruction)
    return found


def last(word: str) -> str:
    return [rest for name, rest in stages()[-1] if name == word][-1]


def test_compiler_stays_in_the_first_stage():
    first, final = stages()

    assert first[0][1].endswith(" AS build")
    assert "rust" in first[0][1]
    assert "rust" not in final[0][1]
    assert not any("apt-get" in rest for _, rest in final)


def test_every_file_that_is_copied_exists():
    for name, rest in instructions():
        if name == "COPY" and "--from=" not in rest:
            for source in shlex.split(rest)[:-1]:
                assert (REPOSITORY / source).exists(), f"COPY {source}: there is no such file"


def test_everything_that_a_build_reads_is_copied():
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    copied = {word for name, rest in stages()[0] if name == "COPY" for word in shlex.split(rest)[:-1]}
    needed = {project["project"]["readme"], *project["project"]["license-files"], "pyproject.toml", "Cargo.lock"}
    manifest = project["tool"]["maturin"]["manifest-path"].partition("/")[0]

    assert needed | {manifest, project["tool"]["maturin"]["python-source"]} <= copied


def test_stages_that_are_copied_from_are_defined():
    names = set(re.findall(r"^FROM .* AS (\w+)$", TEXT, re.MULTILINE))

    assert set(re.findall(r"--from=(\w+)", TEXT)) <= names


def test_server_does_not_run_as_root_and_keeps_messages_in_a_volume():
    assert int(last("USER")) > 0
    assert last("VOLUME") == "/data"
    assert last("STOPSIGNAL") == "SIGTERM"


def test_command_is_one_that_the_server_takes():
    words = json.loads(last("ENTRYPOINT")) + json.loads(last("CMD"))
    known = {name for flag in FLAGS for name in flag.names}

    assert words[:2] == ["jetlake", "server"]
    assert {word.lstrip("-") for word in words if word.startswith("-")} <= known
    assert words[words.index("-sd") + 1] == "/data"


def test_guide_builds_an_image_that_keeps_its_health_check():
    guide = (REPOSITORY / "docs" / "guides" / "run_in_a_container.md").read_text()

    # The format of OCI, which podman writes by itself, has no health checks: it warns, and leaves them out.
    for text in (guide, TEXT):
        assert "podman build --format docker -t jetlake -f packaging/Containerfile ." in text


def test_health_check_asks_the_port_that_the_command_opens():
    words = json.loads(last("CMD"))
    program = json.loads(last("HEALTHCHECK").partition("CMD ")[2])

    assert f"http://127.0.0.1:{words[words.index('-m') + 1]}/healthz" in program[-1]
    compile(program[-1], "healthcheck", "exec")
