"""Packages that are loaded on their first use: commands do without them, and those that need them find them."""

import subprocess
import sys

import pytest

from tests.compatibility.server_process import start_server_process

pytest.importorskip("aiohttp", reason="needs the extra `dashboard`")

PROGRAM_S_MAX = 60


def run_program(text):
    """Run a program in a process of its own and return what it prints."""
    answer = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, check=False, timeout=PROGRAM_S_MAX
    )
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


@pytest.fixture
def websocket_url(tmp_path):
    config = 'websocket { listen: "127.0.0.1:-1", no_tls: true }'
    process = start_server_process("jetlake", tmp_path, config=config)
    log = process.wait_for_log("Listening for websocket clients on ")
    yield next(line for line in log.splitlines() if "websocket clients" in line).rpartition(" ")[2]
    process.stop()


def test_command_over_tcp_does_not_load_aiohttp(jetlake_server):
    words = ["jetlake", "--server", jetlake_server.url, "pub", "greeting", "hello"]

    loaded = run_program(
        f"import sys, atexit; sys.argv = {words!r}\n"
        "atexit.register(lambda: print(*sys.modules))\n"
        "from jetlake.cli.app import main; main()"
    ).split()

    assert "nats.aio.transport" in loaded
    assert "aiohttp.client" not in loaded


def test_command_over_websocket_works(websocket_url):
    words = ["jetlake", "--server", websocket_url, "pub", "greeting", "hello"]

    printed = run_program(f"import sys; sys.argv = {words!r}\nfrom jetlake.cli.app import main; main()")

    assert "greeting" in printed


@pytest.mark.parametrize(
    "statement", ["from aiohttp import web", "import aiohttp.web", "from aiohttp.web import Response"]
)
def test_package_that_is_used_is_the_real_one(statement):
    printed = run_program(
        "from jetlake.cli.deferred_import import defer_import\n"
        "defer_import('aiohttp')\n"
        "import sys, aiohttp as before\n"
        f"{statement}\n"
        "print(sys.modules['aiohttp'].web is before.web, type(sys.modules['aiohttp']).__name__)"
    )

    assert printed.split() == ["True", "module"]


def test_package_that_is_not_installed_stays_missing():
    printed = run_program(
        "from jetlake.cli.deferred_import import defer_import\n"
        "defer_import('no_such_package')\n"
        "try:\n    import no_such_package\n"
        "except ModuleNotFoundError as error:\n    print(error.name)"
    )

    assert printed.strip() == "no_such_package"


def test_name_that_a_package_does_not_have_is_an_attribute_error():
    printed = run_program(
        "from jetlake.cli.deferred_import import defer_import\n"
        "defer_import('aiohttp')\n"
        "import aiohttp\n"
        "try:\n    aiohttp.no_such_name\n"
        "except AttributeError as error:\n    print(error)"
    )

    assert "'aiohttp' has no attribute 'no_such_name'" in printed
