"""`jetlake jsm`: what the documents do not show of the tool of 2019."""

import io

import pytest

import jetlake
from jetlake.cli import jsm


@pytest.fixture
def server():
    with jetlake.Server(jetstream=True) as server:
        yield server


def run(server, monkeypatch, capsys, *words, typed=""):
    """Run a command line, and return its exit code with everything that was printed."""
    monkeypatch.setattr("sys.stdin", io.StringIO(typed))
    code = jsm.main(["-s", server.url, *words])
    shown = capsys.readouterr()
    return code, shown.out + shown.err


def test_a_set_goes_through_its_whole_life(server, monkeypatch, capsys):
    def do(*words, typed=""):
        return run(server, monkeypatch, capsys, *words, typed=typed)

    code, shown = do("add", typed="S\ns\n10, 1000, 1w\nmemory\n")
    assert (code, shown.splitlines()[-1]) == (0, 'Received response of "+OK"')
    assert do("ls-obs", "S") == (0, "\nNo observables\n\n")
    assert do("add-obs", typed="S\nO\n\nn\norig\n")[0] == 0
    assert do("ls-obs", "S") == (0, "\n1) O\n\n")
    assert do("rm-obs", "S", "O") == (0, 'Received response of "+OK"\n')
    assert do("rm-msg", "S", "5") == (1, 'Received response of "-ERR sequence [5] not found"\n')
    assert do("purge", "S") == (0, 'Received response of "+OK"\n')
    assert do("rm", "S") == (0, 'Received response of "+OK"\n')
    assert do("ls") == (0, "\nNo message sets\n\n")
    assert do("info", "S") == (1, 'Received response of "-ERR stream not found"\n')
    assert do("next", "S", "O") == (1, "jsm: nats: timeout\n")


@pytest.mark.parametrize(
    ("typed", "reason"),
    [
        ("S\ns\n1 2\nfile\n", "limits are three, of messages, bytes and age, or none"),
        ("S\ns\n1 x 1w\nfile\n", "'x' is not a number"),
        ("S\ns\n1 1 soon\nfile\n", "'soon' is not a duration"),
        ("S\ns\n\ntape\n", "storage is file or memory, not tape"),
    ],
)
def test_an_answer_that_makes_no_sense_is_told(server, monkeypatch, capsys, typed, reason):
    code, shown = run(server, monkeypatch, capsys, "add", typed=typed)

    assert code == 2
    assert reason in shown


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["frob"], "there is no command frob: see jsm -h"),
        (["info", "a", "b"], "info takes 0 or 1 names, not 2: see jsm -h"),
        (["-x"], "there is no option -x: see jsm -h"),
        (["-creds"], "-creds needs a value: see jsm -h"),
    ],
)
def test_a_command_line_that_makes_no_sense_is_told(capsys, words, reason):
    assert jsm.main(words) == 2
    assert capsys.readouterr().err == f"jsm: {reason}\n"


def test_where_no_server_is_that_is_told(capsys):
    assert jsm.main(["-s", "nats://127.0.0.1:9", "ls"]) == 1
    assert "cannot connect to nats://127.0.0.1:9" in capsys.readouterr().err
