"""The unit of systemd is valid and hardened, and its install script can be run any number of times."""

from __future__ import annotations

import configparser
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY

FOLDER = REPOSITORY / "packaging" / "systemd"
SCRIPT = FOLDER / "install.sh"
UNIT = "etc/systemd/system/jetlake.service"

HARDENED = {
    "CapabilityBoundingSet": "",
    "NoNewPrivileges": "yes",
    "PrivateDevices": "yes",
    "PrivateTmp": "yes",
    "ProtectHome": "yes",
    "ProtectSystem": "strict",
    "RestrictNamespaces": "yes",
    "SystemCallFilter": "@system-service",
}


def install(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(SCRIPT), *map(str, words)], capture_output=True, text=True, check=False, timeout=60)


def settings(text: str) -> dict[str, str]:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(text)
    return {**parser["Unit"], **parser["Service"], **parser["Install"]}


def test_unit_is_hardened_and_reloads_by_a_signal():
    unit = settings((FOLDER / "jetlake.service").read_text())

    assert {name: unit.get(name) for name in HARDENED} == HARDENED
    assert unit["User"] == "jetlake"
    assert unit["StateDirectory"] == "jetlake"
    assert unit["Restart"] == "on-failure"
    assert unit["ExecReload"] == "/bin/kill -HUP $MAINPID"
    assert int(unit["LimitNOFILE"]) >= 65_536


def test_files_are_written_below_the_given_root(tmp_path):
    answer = install("--root", tmp_path, "--prefix", "/srv/jetlake", "--no-package")

    assert answer.returncode == 0, answer.stderr
    unit = (tmp_path / UNIT).read_text()
    assert "ExecStart=/srv/jetlake/bin/jetlake server -c /etc/jetlake/server.conf" in unit
    assert "@PREFIX@" not in unit
    assert (tmp_path / "etc/jetlake/environment").stat().st_mode & 0o777 == 0o600


def test_second_run_changes_nothing_and_keeps_what_an_operator_wrote(tmp_path):
    install("--root", tmp_path, "--no-package")
    (tmp_path / "etc/jetlake/server.conf").write_text("port: 4333\n")

    answer = install("--root", tmp_path, "--no-package")

    assert answer.returncode == 0, answer.stderr
    assert [line for line in answer.stdout.splitlines() if line.startswith("wrote")] == []
    assert (tmp_path / "etc/jetlake/server.conf").read_text() == "port: 4333\n"


def test_second_run_succeeds_though_a_text_for_a_file_that_is_kept_comes_late(tmp_path, monkeypatch):
    install("--root", tmp_path, "--no-package")
    (tmp_path / "late.sh").write_text('printf() { case $1 in "# NAME"*) sleep 0.3 ;; esac; builtin printf "$@"; }\n')
    # Bash reads this file before the script.
    monkeypatch.setenv("BASH_ENV", str(tmp_path / "late.sh"))

    answer = install("--root", tmp_path, "--no-package")

    assert answer.returncode == 0, answer.stderr
    assert "kept: " in answer.stdout


def test_unit_that_was_changed_is_brought_up_to_date(tmp_path):
    install("--root", tmp_path, "--no-package")
    (tmp_path / UNIT).write_text("[Service]\n")

    answer = install("--root", tmp_path, "--no-package")

    assert f"wrote: {tmp_path / UNIT}" in answer.stdout
    assert settings((tmp_path / UNIT).read_text())["User"] == "jetlake"


def test_dry_run_writes_nothing(tmp_path):
    answer = install("--root", tmp_path, "--no-package", "--dry-run")

    assert answer.returncode == 0, answer.stderr
    assert f"would write: {tmp_path / UNIT}" in answer.stdout
    assert list(tmp_path.iterdir()) == []


def test_uninstall_keeps_configuration_and_messages(tmp_path):
    install("--root", tmp_path, "--no-package")
    (tmp_path / "var/lib/jetlake").mkdir(parents=True)

    answer = install("--root", tmp_path, "--uninstall", "--no-package")

    assert answer.returncode == 0, answer.stderr
    assert not (tmp_path / UNIT).exists()
    assert (tmp_path / "etc/jetlake/server.conf").exists()
    assert (tmp_path / "var/lib/jetlake").exists()


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["--prefix"], "--prefix: it needs a value. See --help."),
        (["--prefix", "here"], "--prefix here: it is not an absolute path."),
        (["--wheel", "no.whl"], "no.whl: there is no such file. `make wheel` builds one"),
        (["--python", "no-python"], "no-python: it is not installed. Install Python 3.11"),
        (["--quick"], "--quick: this option does not exist. See --help."),
        (["--wheel", SCRIPT], "a virtual environment cannot be moved to another folder. Add --no-package"),
    ],
)
def test_mistakes_are_explained(tmp_path, words, error):
    answer = install("--root", tmp_path, *words)

    assert answer.returncode == 1
    assert error in answer.stderr
    assert list(tmp_path.iterdir()) == []


def test_configuration_that_is_installed_is_one_the_server_takes(tmp_path):
    text = (FOLDER / "server.conf").read_text()
    (tmp_path / "server.conf").write_text(text.replace("/var/lib/jetlake", str(tmp_path)))

    answer = subprocess.run(
        [sys.executable, "-m", "jetlake", "server", "-t", "-c", str(tmp_path / "server.conf")],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert answer.returncode == 0, answer.stderr
    assert '"127.0.0.1:4222"' in text


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_systemd_finds_nothing_wrong_with_the_unit(tmp_path):
    # It looks for the program and the user, so it is told of those that are there.
    install("--root", tmp_path, "--prefix", Path(sys.executable).parent.parent, "--no-package")
    unit = tmp_path / "jetlake.service"
    unit.write_text((tmp_path / UNIT).read_text().replace("User=jetlake\nGroup=jetlake", "User=daemon"))

    answer = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", str(unit)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    about_ours = [line for line in (answer.stdout + answer.stderr).splitlines() if "jetlake.service" in line]
    assert answer.returncode == 0, answer.stderr
    assert about_ours == []
