"""Pipelines reach servers with users, with TLS and through contexts, as every command does."""

import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from jetlake.cli.app import create
from jetlake.client.raw_connection import ConnectionSettings, RawConnection
from jetlake.client.raw_credentials import ClientCredentials
from jetlake.client.raw_streams import Streams
from jetlake.spark.lake.folder import Lake
from jetlake.spark.pipelines import archive
from jetlake.spark.pipelines.runner import Runner
from tests.compatibility.server_process import start_server_process
from tests.spark.conftest import KINDS

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]


@pytest.fixture(params=KINDS)
def guarded(request, tmp_path):
    """A server with TLS and a user, and a stream with one message."""
    certificate(tmp_path)
    config = (
        "authorization { user: reader, password: secret }\n"
        f'tls {{ cert_file: "{tmp_path}/server.pem", key_file: "{tmp_path}/server.key" }}\n'
    )
    process = start_server_process(request.param, tmp_path, ["-js", "-sd", str(tmp_path / "store")], config)
    url = process.url.replace("nats://", "tls://").replace("127.0.0.1", "localhost")
    settings = ConnectionSettings(
        url=url,
        name="test",
        credentials=ClientCredentials(user="reader", password="secret"),
        tls_ca=f"{tmp_path}/server.pem",
    )
    connection = RawConnection(settings)
    Streams(connection).ask("STREAM.CREATE.ORDERS", {"name": "ORDERS", "subjects": ["orders.>"]})
    connection.request("orders.new", b"one")
    connection.close()
    yield url, tmp_path
    process.stop()


def certificate(folder):
    """Make a certificate for localhost that signs itself."""
    command = (
        "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost"
    )
    subprocess.run(
        [*command.split(), "-keyout", str(folder / "server.key"), "-out", str(folder / "server.pem")],
        check=True,
        capture_output=True,
    )


def test_a_run_passes_user_and_tls_on_to_its_queries(spark, guarded):
    url, folder = guarded
    lake = Lake(folder / "lake")
    connection = {"user": "reader", "password": "secret", "tlsCa": str(folder / "server.pem")}
    pipeline = archive.build("archive", archive.Parameters(stream="ORDERS"))

    (state,) = Runner(spark, lake, url, once=True, connection=connection).run([pipeline])

    assert state.error == ""
    assert lake.existing("archive").snapshot().rows == 1


def test_the_flags_and_a_context_say_how_to_connect(guarded, monkeypatch):
    url, folder = guarded
    for name in ("NATS_URL", "NATS_USER", "NATS_PASSWORD"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder / "config"))
    contexts = folder / "config" / "nats" / "context"
    contexts.mkdir(parents=True)
    content = {"url": url, "user": "reader", "password": "secret", "ca": str(folder / "server.pem")}
    (contexts / "guarded.json").write_text(json.dumps(content))
    flags = ["--server", url, "--user", "reader", "--password", "secret", "--tlsca", str(folder / "server.pem")]

    def missing(*words):
        """Ask for a stream that is not there: whoever is told so was let in."""
        words = ["pipeline", "run", "archive", "--once", "--set", "stream=ORDER", *words]
        return CliRunner().invoke(create(), words).stderr

    assert "there is no stream ORDER; did you mean ORDERS?" in missing(*flags)
    assert "there is no stream ORDER; did you mean ORDERS?" in missing("--context", "guarded")
    assert "there is no stream" not in missing("--server", url, "--tlsca", str(folder / "server.pem"))


def test_without_pyspark_one_line_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "pyspark", None)

    for words in (["run", "archive"], ["validate", "archive", "--offline"]):
        answer = CliRunner().invoke(create(), ["pipeline", *words])
        assert answer.exit_code == 1
        assert answer.stderr == (
            f"jetlake pipeline {words[0]}: pipelines need PySpark: run `pip install 'jetlake[spark]'`\n"
        )
