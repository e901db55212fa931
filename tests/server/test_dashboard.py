"""A server that runs the dashboard: as a process of its own, found through the monitoring port, and gone with it."""

import signal
import socket
import time
import urllib.error
import urllib.request

import pytest

from jetlake.errors import ConfigurationError
from jetlake.server.configuration.load import load_file

pytest.importorskip("jinja2", reason="the extra `dashboard` is not installed")

WAIT_S_MAX = 60.0


class Unfollowed(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_arguments):
        return None


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def page(url):
    """Return status, headers and body of a page."""
    try:
        with urllib.request.build_opener(Unfollowed).open(url, timeout=60) as response:
            return response.status, response.headers, response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read().decode()


def page_once_there(url):
    deadline = time.monotonic() + WAIT_S_MAX
    while True:
        try:
            return page(url)
        except OSError:
            assert time.monotonic() < deadline, "no dashboard answers"
            time.sleep(0.1)


def configuration(tmp_path, dashboard, port):
    path = tmp_path / "server.conf"
    path.write_text(
        f'listen: 127.0.0.1:-1\nhttp: 127.0.0.1:{port}\njetstream {{ store_dir: "{tmp_path}" }}\n{dashboard}'
    )
    return path


def test_a_server_runs_the_dashboard_and_its_monitoring_port_leads_there(start_process, tmp_path):
    port, monitor = free_port(), free_port()
    config = configuration(tmp_path, f"dashboard {{ port: {port}, read_only: true }}", monitor)
    server = start_process("-c", str(config))

    status, _, body = page_once_there(f"http://127.0.0.1:{port}/")

    assert status == 200
    assert "Overview" in body
    status, headers, _ = page(f"http://127.0.0.1:{monitor}/dashboard")
    assert (status, headers["Location"]) == (307, f"http://127.0.0.1:{port}/")
    assert "/dashboard" in page(f"http://127.0.0.1:{monitor}/")[2]
    server.send(signal.SIGTERM)
    assert server.wait() == 0
    with pytest.raises(OSError, match=r"refused|reset"):
        page(f"http://127.0.0.1:{port}/")


def test_without_the_block_there_is_none(start_process, tmp_path):
    monitor = free_port()
    start_process("-c", str(configuration(tmp_path, "", monitor)))

    assert page(f"http://127.0.0.1:{monitor}/dashboard")[0] == 404
    assert "/dashboard" not in page(f"http://127.0.0.1:{monitor}/")[2]


@pytest.mark.parametrize("wrong", ["port: 0", "port: 70000", "prot: 8280", "read_only: 7"])
def test_a_mistake_in_the_block_is_refused_with_its_place(tmp_path, wrong):
    config = configuration(tmp_path, f"dashboard {{ {wrong} }}", -1)

    with pytest.raises(ConfigurationError, match=r"server\.conf:4"):
        load_file(str(config))
