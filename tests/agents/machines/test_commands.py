"""Commands: one that hangs, floods, leaves children behind or cannot start never holds up the others."""

import asyncio
import os
import subprocess
import time

import pytest

from jetlake.agents.machines.commands import OUTPUT_BYTES_MAX, Commands, _read_output, words_of
from jetlake.errors import ConfigurationError
from tests.agents.machines.running import WAIT_S_MAX

ENVIRONMENT = {"PATH": os.environ["PATH"]}

HANG_S = 5
"""When a command that hangs is killed: long after it has done what comes before, on a busy machine too."""


@pytest.fixture
def commands():
    made = Commands()
    yield made
    made.close()


def run(commands, tmp_path, *words, timeout_s=WAIT_S_MAX, **options):
    return commands.run(words, folder=tmp_path, environment=ENVIRONMENT, timeout_s=timeout_s, **options)


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


async def until(condition):
    deadline = time.monotonic() + WAIT_S_MAX
    while not condition():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.02)


async def test_output_and_exit_code_are_returned(commands, tmp_path):
    result = await run(commands, tmp_path, "sh", "-c", "echo out; echo err >&2; pwd; exit 3")

    assert result.exit_code == 3
    assert result.text == f"out\nerr\n{tmp_path}\n"
    assert not result.is_success
    assert not result.failure
    assert result.runtime_ns > 0


def test_what_a_command_has_written_is_read_though_its_time_is_over():
    with subprocess.Popen(["echo", "late"], stdout=subprocess.PIPE) as process:
        process.wait()

        assert _read_output(process, time.monotonic() - 1) == b"late\n"


async def test_a_command_that_hangs_is_killed_with_everything_it_started(commands, tmp_path):
    script = "sleep 600 & echo $! > child; echo before; sleep 600"

    result = await run(commands, tmp_path, "sh", "-c", script, timeout_s=HANG_S)

    assert result.failure == f"killed after {HANG_S} s"
    assert result.text == "before\n"
    child = int((tmp_path / "child").read_text())
    await until(lambda: not is_alive(child))


async def test_a_command_that_ignores_signals_and_closes_its_output_is_killed(commands, tmp_path):
    script = "trap '' TERM INT HUP; echo $$ > pid; exec >&- 2>&-; while true; do sleep 1; done"

    result = await run(commands, tmp_path, "sh", "-c", script, timeout_s=HANG_S)

    assert "killed" in result.failure
    assert not is_alive(int((tmp_path / "pid").read_text()))


async def test_a_daemon_that_keeps_the_pipe_does_not_hold_up_its_command(commands, tmp_path):
    script = "setsid sh -c 'echo $$ > daemon; exec sleep 60' & until test -s daemon; do sleep 0.02; done; echo done"

    result = await run(commands, tmp_path, "sh", "-c", script)

    daemon = int((tmp_path / "daemon").read_text())
    assert result.is_success
    assert result.text == "done\n"
    assert is_alive(daemon)
    os.kill(daemon, 9)


async def test_output_beyond_the_limit_is_thrown_away(commands, tmp_path):
    result = await run(commands, tmp_path, "sh", "-c", f"head -c {3 * OUTPUT_BYTES_MAX} /dev/zero; exit 0")

    assert result.is_success
    assert len(result.output) == OUTPUT_BYTES_MAX


async def test_hanging_commands_do_not_hold_up_others(commands, tmp_path):
    hanging = [asyncio.create_task(run(commands, tmp_path, "sleep", "600")) for _ in range(30)]
    await asyncio.sleep(0)

    results = await asyncio.gather(*(run(commands, tmp_path, "sh", "-c", f"exit {code}") for code in range(5)))

    assert [result.exit_code for result in results] == [0, 1, 2, 3, 4]
    for task in hanging:
        assert not task.done()
        task.cancel()
    await asyncio.gather(*hanging, return_exceptions=True)


async def test_no_more_commands_than_allowed_run_at_once(tmp_path):
    commands = Commands(limit=2)
    # The first two wait for each other: one alone might be over before another has begun.
    script = (
        "touch running.$$; until test -e both || test $(ls | grep -c ^running) -ge 2; do sleep 0.02; done; touch both; "
        "ls | grep -c ^running; sleep 0.2; rm running.$$"
    )

    results = await asyncio.gather(*(run(commands, tmp_path, "sh", "-c", script) for _ in range(6)))
    commands.close()

    assert all(result.is_success for result in results)
    assert max(int(result.text) for result in results) == 2


async def test_a_command_that_cannot_start_is_a_failure_with_a_reason(commands, tmp_path):
    (tmp_path / "not-executable").write_text("x")

    missing = await run(commands, tmp_path, "no-such-program")
    forbidden = await run(commands, tmp_path, "./not-executable")
    impossible = await run(commands, tmp_path, "sh", "a\0b")

    assert missing.failure == "'no-such-program' is not on the path"
    assert "permission denied" in forbidden.failure
    assert "cannot be started" in impossible.failure


async def test_a_command_that_crashes_has_the_signal_as_exit_code(commands, tmp_path):
    result = await run(commands, tmp_path, "sh", "-c", "kill -SEGV $$")

    assert result.exit_code == -11
    assert not result.is_success


async def test_cancelling_kills_the_command_and_disowned_ones_go_on(commands, tmp_path):
    pids = {}
    for name, disown in (("own", False), ("disowned", True)):
        task = asyncio.create_task(
            run(commands, tmp_path, "sh", "-c", f"echo $$ > {name}; exec sleep 600", disown=disown)
        )
        await until(lambda: (tmp_path / name).exists() and (tmp_path / name).read_text().strip())  # noqa: B023
        pids[name] = int((tmp_path / name).read_text())
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    await until(lambda: not is_alive(pids["own"]))
    assert is_alive(pids["disowned"])
    os.kill(pids["disowned"], 9)


async def test_closing_kills_what_runs(tmp_path):
    commands = Commands()
    task = asyncio.create_task(run(commands, tmp_path, "sh", "-c", "echo $$ > pid; exec sleep 600"))
    await until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().strip())

    commands.close()

    assert (await task).failure == "the agent stops"


def test_words_are_split_as_a_shell_would():
    assert words_of("sh -c 'a b' \"c\"") == ["sh", "-c", "a b", "c"]
    for wrong in ("", "  ", "a 'b"):
        with pytest.raises(ConfigurationError):
            words_of(wrong)
