"""The wheel of `make wheel` installs into an environment without Rust and runs a server.

It needs a wheel in build/wheels and the network for what the wheel depends on, so it is part of the long tests.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
import venv
import zipfile
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY

WHEELS = REPOSITORY / "build" / "wheels"
INSTALL_S_MAX = 300
READY_S_MAX = 60.0

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(INSTALL_S_MAX + 100),
    pytest.mark.skipif(os.environ.get("JETLAKE_LONG") != "1", reason="installs a wheel: make wheel test-long"),
]


@pytest.fixture(scope="module")
def wheel() -> Path:
    found = sorted(WHEELS.glob("jetlake-*.whl"), key=lambda path: path.stat().st_mtime)
    if not found:
        pytest.skip("there is no wheel in build/wheels: run `make wheel`")
    return found[-1]


@pytest.fixture(scope="module")
def clean(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """An environment with the wheel and nothing else, and variables without a Rust to be found."""
    folder = tmp_path_factory.mktemp("clean")
    venv.create(folder / "venv", with_pip=True)
    programs = folder / "venv" / "bin"
    variables = {"PATH": f"{programs}:/usr/bin:/bin", "HOME": str(folder), "LANG": "C.UTF-8"}
    settings = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_", "REQUESTS_"))}
    assert subprocess.run(["sh", "-c", "command -v cargo rustc"], env=variables, check=False).returncode != 0
    subprocess.run(
        [programs / "pip", "install", "-q", "--disable-pip-version-check", wheel],
        env=variables | settings,
        check=True,
        timeout=INSTALL_S_MAX,
    )
    return programs, variables


def test_wheel_is_for_every_python_from_3_11_and_for_many_linuxes(wheel):
    assert re.match(r"^jetlake-[\d.]+-cp311-abi3-", wheel.name)
    if sys.platform == "linux":
        assert "manylinux" in wheel.name


def test_wheel_holds_the_engine_the_types_and_the_plug_in(wheel):
    names = zipfile.ZipFile(wheel).namelist()

    assert {"jetlake/_engine.abi3.so", "jetlake/_engine.pyi", "jetlake/py.typed", "pyspark_jetlake/__init__.py"} <= set(
        names
    )
    assert any(name.endswith("entry_points.txt") for name in names)
    assert not [name for name in names if name.startswith("tests/") or name.endswith(".rs")]


def test_engine_is_a_release_build(clean):
    programs, variables = clean

    answer = subprocess.run(
        [programs / "python", "-c", "import jetlake._engine as engine; print(engine.build_profile)"],
        env=variables,
        capture_output=True,
        text=True,
        check=True,
    )

    assert answer.stdout.strip() == "release"


def test_server_of_the_wheel_stores_a_message(clean, tmp_path):
    programs, variables = clean
    log = tmp_path / "dev.log"
    with log.open("wb") as output:
        server = subprocess.Popen(
            [programs / "jetlake", "dev"], env=variables, cwd=tmp_path, stdout=output, stderr=output
        )
    try:
        deadline = time.monotonic() + READY_S_MAX
        while not (found := re.search(r"ready at (nats://\S+)", log.read_text())):
            assert server.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.02)
        answer = subprocess.run(
            [programs / "jetlake", "pub", "demo.hello", "hello", "--jetstream"],
            env=variables | {"NATS_URL": found[1]},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(READY_S_MAX)

    assert answer.returncode == 0, answer.stderr
    assert "Stored in DEMO" in answer.stdout
