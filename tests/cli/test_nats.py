"""`jetlake nats`: what the documents do not show of the tool of 2020."""

import io
import json

import pytest

import jetlake
from jetlake.cli import nats


@pytest.fixture
def server():
    with jetlake.Server(jetstream=True) as server:
        yield server


@pytest.fixture
def do(server, monkeypatch, capsys):
    """A function that runs a command line, and returns its exit code with everything that was printed."""

    def run(*words, typed=""):
        monkeypatch.setattr("sys.stdin", io.StringIO(typed))
        monkeypatch.setenv("NATS_URL", server.url)
        code = nats.main(list(words))
        shown = capsys.readouterr()
        return code, shown.out + shown.err

    return run


def test_streams_and_consumers_go_through_their_whole_life(do, tmp_path):
    assert do("stream", "ls") == (0, "No Streams defined\n")
    code, shown = do("stream", "add", "S", "--subjects", "s.a,s.b", "--storage", "mem", "--retention", "workq")
    assert code == 0
    assert "Retention: Memory - WorkQueue" in shown
    assert do("str", "ls") == (0, "Streams:\n\n\tS\n\n")
    assert do("con", "ls", "S") == (0, "No Consumers defined for Stream S\n")
    assert do("con", "add", "S", "P", "--pull", "--filter", "s.a")[0] == 0
    assert do("pub", "s.a", "hello")[1].endswith(" Published 5 bytes to s.a\n")
    assert do("con", "next", "S", "P") == (0, "--- received on s.a\nhello\n\nAcknowledged message\n")
    assert do("con", "rm", "S", "P", typed="n\n") == (0, "? Really delete Consumer S > P No\n")
    assert do("con", "rm", "S", "P", typed="y\n") == (0, "? Really delete Consumer S > P Yes\n")
    assert do("stream", "edit", "S", "--subjects", "s.a,s.b") == (0, "No difference in configuration\n")
    _, shown = do("stream", "edit", "S", "--max-msgs", "5", typed="n\n")
    assert shown.endswith("? Really edit Stream S No\n")
    code, shown = do("stream", "info", "-j")
    assert json.loads(shown)["config"]["max_msgs"] == -1
    (tmp_path / "S.json").write_text(shown.replace('"max_msgs": -1', '"max_msgs": 5'))
    assert do("stream", "edit", "S", "-f", "--config", str(tmp_path / "S.json"))[0] == 0
    assert "Maximum Messages: 5" in do("stream", "info", "S")[1]
    assert do("stream", "purge", "S", "-f")[0] == 0
    assert do("stream", "rm", "S", "-f") == (0, "")


def test_an_ephemeral_consumer_is_shown_by_the_name_it_got(do):
    do("stream", "add", "S", "--subjects", "s")
    code, shown = do("con", "add", "S", "--ephemeral", "--deliver", "new")

    assert code == 0
    assert "Deliver All: false" in shown
    assert "Ack Wait: 30s" in shown


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ([], "the following arguments are required: COMMAND, try --help"),
        (["stream", "add", "X"], "a Stream needs --subjects, try --help"),
        (["stream", "add"], "a Stream needs a name, try --help"),
        (["stream", "add", "X", "--subjects", "x", "--max-age", "soon"], "'soon' is not a duration"),
        (["stream", "add", "X", "--subjects", "x", "--config", "none.json"], "none.json cannot be read: No such file"),
        (["stream", "info", "X"], "could not pick a Stream to operate on: there is no Stream X; name one of S"),
        (["stream", "edit", "S", "--retention", "never", "-f"], "bad request"),
        (["consumer", "info", "S", "X"], "consumer not found"),
        (["consumer", "add", "S"], "a Consumer needs a name, or --ephemeral, try --help"),
        (["consumer", "add", "--config", "none.json"], "none.json cannot be read"),
        (["consumer", "add", "S", "C", "--deliver", "never"], "--deliver can not be never"),
        (["consumer", "add", "S", "C", "--pull", "--target", "t"], "--pull and --target exclude each other"),
        (["consumer", "next", "S", "X"], "nats: timeout, try --help"),
        (["request", "nobody.listens", "x"], "nats: timeout, try --help"),
        (["stream", "ls", "-s", "nats://127.0.0.1:9"], "cannot connect to nats://127.0.0.1:9"),
    ],
)
def test_what_cannot_be_done_is_told_in_one_line(do, words, reason):
    do("stream", "add", "S", "--subjects", "s")

    code, shown = do(*words)

    assert code == 1
    error = shown.splitlines()[-1]
    assert error.startswith("nats: error: ")
    assert reason in error


def test_help_is_no_failure(do):
    code, shown = do("--help")

    assert code == 0
    assert "stream" in shown
