"""The process: exit codes, texts, files, and what it does not import."""

import json
import os
import re
import signal
import socket
import subprocess
import sys

import pytest

from jetlake.server.main import main

HEAVY = {
    "asyncio",
    "base64",
    "bcrypt",
    "cryptography",
    "hashlib",
    "queue",
    "logging",
    "nacl",
    "nats",
    "rich",
    "subprocess",
    "tempfile",
    "typer",
}


def run(capsys, *words):
    code = main(list(words))
    answer = capsys.readouterr()
    return code, answer.out, answer.err


@pytest.mark.parametrize("words", [["-v"], ["--version"], ["version"], ["VERSION", "foo"], ["-p", "1", "version"]])
def test_version_is_that_of_nats_server(capsys, words):
    assert run(capsys, *words) == (0, "nats-server: v2.15.1\n", "")


@pytest.mark.parametrize("words", [["-h"], ["--help"], ["help"], ["-D", "Help"]])
def test_help_shows_the_usage(capsys, words):
    code, out, err = run(capsys, *words)

    assert (code, err) == (0, "")
    assert out.startswith("\nUsage: nats-server [options]\n")


def test_help_on_tls(capsys):
    assert run(capsys, "--help_tls")[1].startswith("\nTLS is configured")


def test_unknown_flag_shows_the_usage_and_ends_with_0(capsys):
    code, out, err = run(capsys, "--bogus")

    assert (code, err) == (0, "flag provided but not defined: -bogus\n")
    assert "Usage: nats-server" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["foo"], 'nats-server: unrecognized command: "foo"\n'),
        (["-"], 'nats-server: unrecognized command: "-"\n'),
        (["-D", "false"], 'nats-server: unrecognized command: "false"\n'),
        (["-t"], "nats-server: must specify [-c, --config] option to check configuration file syntax\n"),
    ],
)
def test_refusals_are_those_of_nats_server(capsys, words, message):
    assert run(capsys, *words) == (1, "", message)


def test_configuration_file_that_is_missing_is_named(capsys):
    assert run(capsys, "-c", "missing.conf") == (1, "", "nats-server: open missing.conf: no such file or directory\n")


def test_check_says_that_a_file_is_valid(capsys, tmp_path):
    path = tmp_path / "server.conf"
    path.write_text("port: 4222\n")

    code, out, err = run(capsys, "-t", "-c", str(path))

    assert (code, out) == (0, "")
    assert re.fullmatch(rf"nats-server: configuration file {path} is valid \(sha256:[0-9a-f]{{64}}\)\n", err)


def test_check_names_every_mistake_and_counts_warnings_as_such(capsys, tmp_path):
    path = tmp_path / "server.conf"
    path.write_text("foo: 1\nport: true\n")
    old = tmp_path / "old.conf"
    old.write_text("ping_interval: 5\n")

    assert run(capsys, "-t", "-c", str(path)) == (
        1,
        "",
        f'nats-server: {path}:1:1: unknown field "foo"\n{path}:2:1: "port" must be an integer, not a boolean\n',
    )
    assert run(capsys, "-t", "-c", str(old))[0] == 1


def test_check_finds_what_would_only_fail_at_the_start(capsys, tmp_path):
    path = tmp_path / "server.conf"
    path.write_text('tls { cert_file: "missing.pem", key_file: "missing.pem" }\n')

    code, _, err = run(capsys, "-t", "-c", str(path))

    assert code == 1
    assert "missing.pem: no such file or directory" in err


@pytest.mark.parametrize(
    ("remote", "reason"),
    [
        ("nkey: missing.nk", "missing.nk: no such file or directory"),
        ("creds: junk.pem", "junk.pem"),
        ("tls { ca_file: missing.pem }", "missing.pem: no such file or directory"),
        ("tls { ca_file: junk.pem }", 'the remote "hub": tls ca_file has no certificate'),
    ],
)
def test_check_reads_the_files_of_remotes(capsys, tmp_path, monkeypatch, remote, reason):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "junk.pem").write_text("junk")
    path = tmp_path / "server.conf"
    path.write_text(f"jetstream {{ remotes {{ hub {{ url: 'nats://127.0.0.1:4222', {remote} }} }} }}\n")

    code, _, err = run(capsys, "-t", "-c", str(path))

    assert code == 1
    assert reason in err


def test_name_with_a_space_is_refused(capsys):
    code, _, err = run(capsys, "--name", "a b")

    assert code == 1
    assert err.startswith("nats-server: server name cannot contain spaces")


def test_start_up_lines_come_in_the_order_of_the_first_jetstream(start_process, tmp_path):
    process = start_process("-js", "-sd", str(tmp_path / "data"))

    texts = re.findall(r"\[INF\] (.*)", process.log())
    server_id = next(text for text in texts if text.startswith("Server id is ")).removeprefix("Server id is ")
    patterns = [
        r"Starting nats-server version 2\.15\.1",
        r"Git commit \[.+\]",
        r"  Version:  2\.15\.1",
        rf"  Name:     {server_id}",
        rf"  ID:       {server_id}",
        r"Starting JetStream",
        r"----------- JETSTREAM \(Beta\) -----------",
        r"  Max Memory:      \d+\.\d\d .B",
        r"  Max Storage:     \d+\.\d\d .B",
        rf'  Store Directory: "{tmp_path}/data/jetstream"',
        r"----------------------------------------",
        r"Listening for client connections on 127\.0\.0\.1:\d+",
        rf"Server id is {server_id}",
        r"Server is ready",
    ]
    positions = [next((i for i, text in enumerate(texts) if re.fullmatch(p, text)), None) for p in patterns]
    assert None not in positions, list(zip(patterns, positions, strict=True))
    assert positions == sorted(positions)
    assert re.fullmatch(r"N[A-Z2-7]{55}", server_id)


def test_default_store_is_warned_about(start_process, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))

    process = start_process("-js")

    assert "[WRN] Temporary storage directory used, data could be lost on system reboot" in process.log()
    assert f'Store Directory: "{tmp_path}/nats/jetstream"' in process.log()


def test_pid_file_stays_and_ports_file_goes_with_a_clean_end(start_process, tmp_path):
    pid_file, ports_folder = tmp_path / "server.pid", tmp_path / "ports"
    ports_folder.mkdir()
    process = start_process("-P", str(pid_file), "--ports_file_dir", str(ports_folder))
    (ports_file,) = ports_folder.iterdir()

    ports = json.loads(ports_file.read_bytes())
    process.send(signal.SIGTERM)

    assert process.wait() == 0
    assert ports == {"nats": [f"nats://127.0.0.1:{process.port}"]}
    assert ports_file.name == f"main.py_{process.pid}.ports"
    assert not ports_file.exists()
    assert pid_file.read_text() == str(process.pid)


def test_ports_file_is_named_after_the_link_the_process_was_called_by(start_process, tmp_path):
    script = os.path.join(os.path.dirname(sys.executable), "jetlake-nats-server")
    if not os.path.exists(script):
        pytest.fail("the console script is not installed: run `make setup`")
    link = tmp_path / "nats-server"
    link.symlink_to(script)
    ports_folder = tmp_path / "ports"
    ports_folder.mkdir()

    process = start_process(command=[str(link), "-p", "-1", "-a", "127.0.0.1", "--ports_file_dir", str(ports_folder)])

    (ports_file,) = ports_folder.iterdir()
    assert ports_file.name == f"nats-server_{process.pid}.ports"


def test_ports_folder_that_is_missing_is_an_error_line_and_no_more(start_process, tmp_path):
    process = start_process("--ports_file_dir", str(tmp_path / "missing"))

    process.wait_for_line("[ERR] Error writing ports file (")
    process.send(signal.SIGINT)

    assert process.wait() == 0


def test_pid_file_that_cannot_be_written_is_fatal(start_process, tmp_path):
    process = start_process("-P", str(tmp_path / "missing" / "pid"), wait=False)

    assert process.wait() == 1
    assert "[FTL] Could not write pidfile: open " in process.log()


def test_log_file_that_cannot_be_opened_is_fatal(start_process, tmp_path):
    path = tmp_path / "missing" / "server.log"

    process = start_process("-l", str(path), wait=False)

    assert process.wait() == 1
    assert process.log().endswith(f" error opening file: open {path}: no such file or directory\n")


def test_taken_port_is_fatal(start_process):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

        process = start_process("-a", "127.0.0.1", "-p", str(port), wait=False)

        assert process.wait() == 1
    assert (
        f'[FTL] Error listening on port: 127.0.0.1:{port}, "listen tcp 127.0.0.1:{port}: bind: address already in use"'
    ) in process.log()


def test_log_file_takes_the_whole_log(start_process, tmp_path):
    path = tmp_path / "chosen.log"
    process = start_process("-l", str(path), wait=False)
    wait_for_text(path, "Server is ready")

    process.send(signal.SIGINT)

    assert process.wait() == 0
    assert process.log() == ""
    assert path.read_text().rstrip().endswith("Server Exiting..")


@pytest.mark.parametrize(
    ("flags", "warning"),
    [
        (["--cluster_name", "c", "--routes", "nats://127.0.0.1:1"], "Clustering is out of scope"),
        (["-s"], "Syslog is not supported"),
        (["--user", "a", "--pass", "b"], "Plaintext passwords detected, use nkeys or bcrypt"),
    ],
)
def test_warning_comes_as_one_line(start_process, flags, warning):
    process = start_process(*flags)

    assert process.log().count(f"[WRN] {warning}") == 1
    assert process.log().count("[WRN]") == 1


def test_debug_and_trace_lines_come_from_the_engine(start_process):
    process = start_process("-DV")
    with socket.create_connection(("127.0.0.1", process.port), timeout=60) as client:
        client.sendall(b'CONNECT {"verbose":false}\r\nPING\r\n')
        while b"PONG" not in client.recv(4096):
            pass

    process.wait_for_line("[DBG]")
    process.wait_for_line("[TRC]")


def test_server_process_does_not_import_what_it_does_not_need(tmp_path):
    """Keeps the cold start fast: each of these costs more than the rest together."""
    program = """
import os, signal, sys, threading
import jetlake.cli.app
from jetlake.server import server
start = server.Server.start
def start_then_end(self):
    start(self)
    threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
    return self
server.Server.start = start_then_end
sys.argv = ["jetlake", "server", "-p", "-1", "-a", "127.0.0.1"]
code = jetlake.cli.app.main()
print(*sys.modules)
sys.exit(code)
"""
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)

    assert answer.returncode == 0, answer.stderr
    imported = set(answer.stdout.split())
    assert not HEAVY & imported
    assert not [name for name in imported if name.startswith("jetlake.server.configuration")]


def wait_for_text(path, text):
    for _ in range(1000):
        if path.exists() and text in path.read_text():
            return
        signal.sigtimedwait([], 0.01)
    raise AssertionError(f"{text!r} did not come")
