"""Child processes of a server: started, restarted, given up, stopped, and never left behind."""

import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest

from jetlake.server import children as children_module
from jetlake.server.children import Child, Children
from jetlake.server.log import Log

WAIT_S_MAX = 60.0


class Lines(Log):
    """A log that keeps its lines."""

    def __init__(self):
        super().__init__(debug=True)
        self.lines = []

    def _write(self, level, text):
        self.lines.append((level, text))

    def close(self):
        pass

    def wait_for(self, text):
        deadline = time.monotonic() + WAIT_S_MAX
        while not any(text in line for _, line in list(self.lines)):
            assert time.monotonic() < deadline, f"{text!r} is not in {self.lines}"
            time.sleep(0.01)


@pytest.fixture
def program(tmp_path, monkeypatch):
    """Let a child be a small program in place of `jetlake`."""

    def install(source):
        package = tmp_path / "package"
        (package / "jetlake").mkdir(parents=True)
        (package / "jetlake" / "__init__.py").touch()
        (package / "jetlake" / "__main__.py").write_text(textwrap.dedent(source))
        monkeypatch.setenv("PYTHONPATH", str(package))

    return install


def test_a_child_gets_its_settings_and_its_lines_reach_the_log(program):
    program("""
        import json, signal, sys
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        settings = json.loads(sys.stdin.readline())
        print("[WRN] the word is", settings["word"], *sys.argv[1:], file=sys.stderr, flush=True)
        print("and a plain line", file=sys.stderr, flush=True)
        signal.pause()
    """)
    log = Lines()
    children = Children([Child(name="example", words=("a", "b"), settings={"word": "swordfish"})], log)

    children.start()
    log.wait_for("and a plain line")
    children.stop()

    assert ("warning", "example: the word is swordfish a b") in log.lines
    assert ("info", "example: and a plain line") in log.lines
    log.wait_for("stopped with exit code 0")


def test_a_child_that_ends_is_started_again_and_given_up_in_the_end(program, monkeypatch):
    monkeypatch.setattr(children_module, "FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr(children_module, "FAILURES_MAX", 3)
    program("import sys; sys.exit('no luck')")
    log = Lines()
    children = Children([Child(name="example", words=())], log)

    children.start()
    log.wait_for("given up after 3 failures in a row")

    assert sum("started as process" in text for _, text in log.lines) == 3
    assert sum(text == "example: no luck" for _, text in log.lines) == 3
    children.stop()


def test_a_killed_child_is_replaced(program, monkeypatch):
    monkeypatch.setattr(children_module, "FIRST_PAUSE_S", 0.01)
    program("import signal; signal.pause()")
    log = Lines()
    children = Children([Child(name="example", words=())], log)
    children.start()
    log.wait_for("started as process")
    first = wait_for_process(children)

    os.kill(first, signal.SIGKILL)
    log.wait_for("starting it again")
    second = wait_for_process(children, other_than=first)

    assert second != first
    children.stop()
    assert not is_alive(second)


def test_a_child_that_does_not_stop_is_killed(program, monkeypatch):
    monkeypatch.setattr(children_module, "STOP_S_MAX", 0.2)
    program("""
        import signal, sys
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        print("ready", file=sys.stderr, flush=True)
        while True:
            signal.pause()
    """)
    log = Lines()
    children = Children([Child(name="example", words=())], log)
    children.start()
    log.wait_for("ready")
    process_id = wait_for_process(children)

    children.stop()

    log.wait_for("is killed")
    assert not is_alive(process_id)


def test_a_child_notices_that_its_server_was_killed(program, tmp_path):
    program("""
        import os, sys
        sys.stdin.readline()
        print(f"child {os.getpid()}", file=sys.stderr, flush=True)
        sys.stdin.read()
    """)
    source = textwrap.dedent(f"""
        import sys, time
        sys.path.insert(0, {str(children_module.__file__).rpartition("/jetlake/")[0]!r})
        from jetlake.server.children import Child, Children
        from jetlake.server.log import ProcessLog
        from jetlake.server.options import LogOptions
        Children([Child(name="example", words=())], ProcessLog(LogOptions())).start()
        time.sleep({WAIT_S_MAX})
    """)
    with subprocess.Popen([sys.executable, "-c", source], stderr=subprocess.PIPE, text=True) as parent:
        line = next(line for line in parent.stderr if "child " in line)
        parent.kill()
    process_id = int(line.rsplit(" ", 1)[1])

    deadline = time.monotonic() + WAIT_S_MAX
    while is_alive(process_id):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def wait_for_process(children, other_than=0):
    deadline = time.monotonic() + WAIT_S_MAX
    while not (found := [each for each in children.process_ids if each != other_than]):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return found[0]


def is_alive(process_id):
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    # A killed orphan may wait as a zombie for whoever reaps here.
    with open(f"/proc/{process_id}/stat") as file:
        return file.read().rpartition(")")[2].split()[0] != "Z"
