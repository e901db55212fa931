"""From a command line to the options of a server."""

import pytest

from jetlake.config import Limits
from jetlake.errors import ConfigurationError
from jetlake.server import unserved
from jetlake.server.flags import parse
from jetlake.server.options import Credentials, LameDuckOptions, ServerOptions, default_store_directory, from_flags


def options_of(*words):
    return from_flags(parse(list(words)), program="nats-server")


def test_without_flags_the_defaults_of_nats_server_hold():
    options = options_of()

    assert (options.host, options.port) == ("0.0.0.0", 4222)
    assert options.log.timestamps
    assert not options.access.required
    assert unserved.warnings(options) == []


@pytest.mark.parametrize(("flag", "port"), [("-1", 0), ("0", 4222), ("4333", 4333)])
def test_port_flag_means_random_default_or_itself(flag, port):
    assert options_of("-p", flag).port == port


@pytest.mark.parametrize("flag", ["70000", "-5"])
def test_port_beyond_the_range_is_refused(flag):
    with pytest.raises(ConfigurationError, match=r"port is .* between 0 and 65535"):
        options_of("-p", flag).engine_options("commit")


def test_name_with_a_space_is_refused():
    with pytest.raises(ConfigurationError, match="server name cannot contain spaces"):
        options_of("--name", "a b")


@pytest.mark.parametrize(
    ("flag", "debug", "trace"),
    [("-D", True, False), ("-V", False, True), ("-VV", False, True), ("-DV", True, True), ("-DVV", True, True)],
)
def test_verbosity_flags_combine_debug_and_trace(flag, debug, trace):
    log = options_of(flag).log

    assert (log.debug, log.trace) == (debug, trace)


def test_credentials_come_from_user_pass_and_auth():
    options = options_of("--user", "ada", "--pass", "secret")

    assert options.access.credentials == Credentials(user="ada", password="secret")
    assert options.engine_options("commit").auth_required
    assert options_of("--auth", "token").access.required
    assert not options_of("--pass", "alone").access.required


def test_secrets_are_not_shown():
    shown = repr(options_of("--user", "ada", "--pass", "secret-1", "--auth", "secret-2"))

    assert "secret-1" not in shown
    assert "secret-2" not in shown


def test_log_files_and_folders_are_taken_over():
    options = options_of("-l", "a.log", "--log_size_limit", "100", "-T=false", "--logtime_utc", "-P", "a.pid")

    assert options.log.file == "a.log"
    assert options.log.size_limit_bytes == 100
    assert not options.log.timestamps
    assert options.log.utc
    assert options.pid_file == "a.pid"


def test_negative_log_size_is_refused():
    with pytest.raises(ConfigurationError, match="log size limit"):
        options_of("--log_size_limit", "-1")


@pytest.mark.parametrize(
    ("words", "warning"),
    [
        (["--routes", "nats://a:1", "--cluster", "nats://b:2"], "Clustering is out of scope"),
        (["-s"], "Syslog is not supported"),
        (["-r", "udp://localhost:514"], "Syslog is not supported"),
        (["--profile", "-1"], "--profile is not supported"),
        (["--max_traced_msg_len", "10"], "--max_traced_msg_len is not supported"),
    ],
)
def test_what_is_accepted_without_being_served_is_warned_about_once(words, warning):
    lines = unserved.warnings(options_of(*words))

    assert len(lines) == 1
    assert lines[0].startswith(warning)


def test_grace_period_must_be_shorter_than_the_duration():
    with pytest.raises(ConfigurationError, match="grace period"):
        LameDuckOptions(duration_s=5, grace_period_s=5)


def test_limits_cross_into_the_engine_with_everything_else():
    options = ServerOptions(limits=Limits(max_payload_bytes=17), server_name="a", client_advertise="b:1")

    engine_options = options.engine_options("commit")

    assert engine_options.max_payload_bytes == 17
    assert engine_options.client_advertise == "b:1"
    assert engine_options.git_commit == "commit"


def test_default_store_is_in_the_temporary_folder(monkeypatch):
    monkeypatch.setenv("TMPDIR", "/somewhere")

    assert default_store_directory() == "/somewhere/nats"
