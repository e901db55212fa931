"""What TLS costs: the rate of messages with it, as a part of the rate without, at both servers.

Method: each server runs twice, in the clear and with TLS, all four at the same time. A round measures the two of one
server one after the other, in turns; the loss is the median of the rounds' ratios. The load generator encrypts too, on
the same cores, so that the loss includes the client's side. The goal for Jetlake is 25 %.

Run `python -m benchmarks.tls_cost`, on a release build.
"""

import argparse
import datetime
import ipaddress
import json
import os
import platform
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from benchmarks.servers import JETLAKE, START_S_MAX, BenchmarkError, ServerProcess, commands
from jetlake._engine import EngineError, build_profile, run_load

GOAL_LOSS = 0.25

ROUND_S = 0.5
"""How long one measurement takes, about."""

FIRST_MESSAGES = 100_000


def main() -> int:
    options = read_options()
    if build_profile != "release":
        print("tls_cost: the engine is a debug build; run `make engine-release` first", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory(prefix="jetlake-bench-") as folder, ExitStack() as stack:
        certificate_file, flags = make_certificate(Path(folder))
        authority = certificate_file.read_text()
        servers = {}
        for name, command in commands().items():
            plain = stack.enter_context(ServerProcess(name, command))
            secure = stack.enter_context(SecureServerProcess(name, [*command, *flags]))
            servers[name] = (plain, secure)
        losses = {name: measure(*pair, authority, options) for name, pair in servers.items()}
    report = {
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()} {platform.release()}",
        "payload_bytes": options.size,
        "rounds": options.rounds,
        "servers": losses,
    }
    print(json.dumps(report, indent=2))
    return 0 if losses[JETLAKE]["loss"] <= GOAL_LOSS else 1


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15, help="how often each pair is measured")
    parser.add_argument("--size", type=int, default=128, help="bytes of payload")
    return parser.parse_args()


class SecureServerProcess(ServerProcess):
    """A server whose clients speak TLS. It is ready when it says INFO, which comes before."""

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        give_up_at = time.monotonic() + START_S_MAX
        while not self._says_info():
            if time.monotonic() > give_up_at or self._process.poll() is not None:
                self.__exit__()
                raise BenchmarkError(f"{self.name} does not start with TLS; start it by hand to see why")
            time.sleep(0.01)
        return self

    def _says_info(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=START_S_MAX) as client:
                return client.recv(5) == b"INFO "
        except ConnectionRefusedError:
            return False


def make_certificate(folder: Path) -> tuple[Path, list[str]]:
    """Write a certificate for the loopback address, and return it with the flags of a server that shows it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "benchmark")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    certificate_file, key_file = folder / "certificate.pem", folder / "key.pem"
    certificate_file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    key_file.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return certificate_file, ["--tls", "--tlscert", str(certificate_file), "--tlskey", str(key_file)]


def measure(
    plain: ServerProcess, secure: ServerProcess, authority: str, options: argparse.Namespace
) -> dict[str, float]:
    """Return the loss of a server's rate by TLS, and its best rates."""
    first = rate(plain, None, FIRST_MESSAGES, options.size)
    messages = max(1, int(first * ROUND_S))
    rates: list[tuple[float, float]] = []
    for number in range(options.rounds):
        if number % 2:
            without = rate(plain, None, messages, options.size)
            with_tls = rate(secure, authority, messages, options.size)
        else:
            with_tls = rate(secure, authority, messages, options.size)
            without = rate(plain, None, messages, options.size)
        rates.append((without, with_tls))
    losses = [1 - with_tls / without for without, with_tls in rates]
    return {
        "loss": round(statistics.median(losses), 3),
        "loss_lowest": round(min(losses), 3),
        "loss_highest": round(max(losses), 3),
        "plain_best": round(max(without for without, _ in rates)),
        "tls_best": round(max(with_tls for _, with_tls in rates)),
    }


def rate(server: ServerProcess, authority: str | None, messages: int, size: int) -> float:
    """Return the messages per second from one publisher to one subscriber."""
    plan = {
        "url": server.address,
        "workload": "pubsub",
        "publishers": 1,
        "subscribers": 1,
        "payload_bytes": size,
        "messages": messages,
        "subject": "bench",
        "user": None,
        "password": None,
        "token": None,
        "tls_ca_pem": authority,
    }
    try:
        figures = json.loads(run_load(json.dumps(plan).encode()))
    except EngineError as error:
        raise BenchmarkError(f"{server.name}: {error.args[-1]}") from error
    deliver_rate: float = figures["deliver_rate"]
    return deliver_rate


if __name__ == "__main__":
    sys.exit(main())
