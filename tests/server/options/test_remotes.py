"""Remotes as the engine gets them: with the content of their files."""

import pytest

from jetlake.config import EngineRemoteTls
from jetlake.errors import ConfigurationError
from jetlake.server.options import Remote, RemoteTls

SEED = "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY"

CREDENTIALS = f"""-----BEGIN NATS USER JWT-----
eyJ0eXAiOiJKV1QifQ.eyJqdGkiOiJTVUFDIn0.c2ln-_
------END NATS USER JWT------

************************* IMPORTANT *************************
NKEY Seed printed below can be used to sign and prove identity.

-----BEGIN USER NKEY SEED-----
{SEED}
------END USER NKEY SEED------
"""


def remote(**options):
    return Remote(name="hub", addresses=("hub.lan:4222",), **options)


def test_a_seed_is_found_in_its_file(tmp_path):
    path = tmp_path / "user.nk"
    path.write_text(f"# my key\n{SEED}\n")

    assert remote(seed_file=str(path)).for_engine().seed == SEED


def test_credentials_are_claims_and_a_seed(tmp_path):
    path = tmp_path / "user.creds"
    path.write_text(CREDENTIALS)

    found = remote(credentials_file=str(path)).for_engine()

    assert (found.jwt, found.seed) == ("eyJ0eXAiOiJKV1QifQ.eyJqdGkiOiJTVUFDIn0.c2ln-_", SEED)


def test_certificates_are_read(tmp_path):
    for name in ("ca", "cert", "key"):
        (tmp_path / name).write_text(name)
    tls = RemoteTls(
        authority_file=str(tmp_path / "ca"), certificate_file=str(tmp_path / "cert"), key_file=str(tmp_path / "key")
    )

    found = remote(tls=tls).for_engine().tls

    assert found == EngineRemoteTls(ca_pem="ca", certificate_pem="cert", key_pem="key")
    assert "key" not in repr(found)


@pytest.mark.parametrize(
    ("content", "reason"),
    [(None, "cannot be read: open .*: no such file"), (b"hidden", "has no "), (b"\xff", "is not text")],
)
@pytest.mark.parametrize("option", ["seed_file", "credentials_file"])
def test_a_file_that_is_of_no_use_is_named_and_not_shown(tmp_path, option, content, reason):
    path = tmp_path / "file"
    if content is not None:
        path.write_bytes(content)

    with pytest.raises(ConfigurationError, match=reason) as caught:
        remote(**{option: str(path)}).for_engine()

    assert str(path) in str(caught.value)
    assert "hidden" not in str(caught.value)
