"""A file and the flags over it."""

import pytest

from jetlake.errors import ConfigurationError
from jetlake.server.configuration.source import ConfigurationSource
from jetlake.server.flags import parse


@pytest.fixture
def load(tmp_path):
    def load(text, *flags):
        path = tmp_path / "server.conf"
        path.write_text(text)
        return ConfigurationSource(str(path), parse(list(flags)), "nats-server").load().options

    return load


def test_flags_go_over_the_file(load):
    text = """
        listen: "10.0.0.1:4333", server_name: file, debug: true, http: 8222, pid_file: file.pid
        authorization { user: a, password: b }
        jetstream { store_dir: "/file" }
    """

    unchanged = load(text)
    changed = load(
        *(text, "-p", "-1", "-a", "127.0.0.1", "-n", "flag", "-D=false", "-V", "-m", "-1", "-P", "flag.pid"),
        *("--pass", "c", "-sd", "/flag"),
    )

    assert (unchanged.host, unchanged.port, unchanged.server_name) == ("10.0.0.1", 4333, "file")
    assert (changed.host, changed.port, changed.server_name) == ("127.0.0.1", 0, "flag")
    assert (changed.log.debug, changed.log.trace) == (False, True)
    assert changed.monitoring.http_port == 0
    assert changed.pid_file == "flag.pid"
    assert (changed.access.credentials.user, changed.access.credentials.password) == ("a", "c")
    assert changed.jetstream.store_directory == "/flag"
    assert changed.jetstream.enabled


def test_tls_of_a_file_is_switched_off_or_replaced_by_flags(load):
    text = "tls { cert_file: c, key_file: k, timeout: 5 }"

    assert load(text).tls.certificate_file == "c"
    assert load(text, "--tls=false").tls is None
    replaced = load(text, "--tls", "--tlscert", "c2", "--tlskey", "k2")
    assert (replaced.tls.certificate_file, replaced.tls.timeout_s) == ("c2", 5)
    with pytest.raises(ConfigurationError, match="TLS Server certificate must be present"):
        load(text, "--tls")


def test_file_is_read_again(tmp_path):
    path = tmp_path / "server.conf"
    path.write_text("max_payload: 1KB")
    source = ConfigurationSource(str(path), parse([]), "nats-server")
    first = source.load()

    path.write_text("max_payload: 2KB")
    second = source.load()

    assert (first.options.limits.max_payload_bytes, second.options.limits.max_payload_bytes) == (1024, 2048)
    assert first.digest != second.digest
