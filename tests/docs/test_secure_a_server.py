"""The guide about security: each of its configurations starts a server, and its commands do what the guide says.

The blocks of this page are alternatives for one file, with gaps for passwords and hashes; they are filled in here, so
the page is followed by this test instead of `test_examples`.
"""

from __future__ import annotations

import pytest

from tests.compatibility.certificates import Authority
from tests.docs import pages
from tests.docs.pages import Block
from tests.docs.shell import Session

PAGE = "docs/guides/secure_a_server.md"
COMMANDS, HASHING, ENCRYPTING = (block for block in pages.blocks(PAGE) if block.language == "sh")
CONFIGURATIONS = [block for block in pages.blocks(PAGE) if block.language == "text"]
CHECK, START, RELOAD = (line.partition(" #")[0] for line in COMMANDS.text.splitlines())


@pytest.fixture
def session(tmp_path):
    reader = Session(tmp_path)
    reader.environment |= {"BOB_PASSWORD": "bobs", "JETLAKE_KEY": "k" * 32}
    yield reader
    reader.close()


def lines(*texts: str, note: str = "") -> Block:
    return Block(PAGE, COMMANDS.line, "sh", "\n".join(texts), note)


def hashed(session: Session) -> str:
    """Return what the guide's own command prints for a password."""
    return session.run(lines(f"echo secret | {HASHING.text.strip()} 2>/dev/null")).strip().splitlines()[-1]


def save(session: Session, block: Block, password_hash: str = "") -> None:
    text = block.text.replace("$2b$11$…", password_hash).replace("password: …", "password: secret")
    assert "…" not in text, f"{PAGE}:{block.line} has a gap that this test does not know"
    session.save(block._replace(text=text.replace("/data", "data"), note="file server.conf"))


def certify(folder) -> None:
    authority = Authority(folder, "clients-ca")
    for certificate in (authority.server("server-cert"), authority.client("ada", subject={"CN": "ada", "O": "Acme"})):
        assert certificate.certificate_file.exists()
    (folder / "server-cert-key.pem").rename(folder / "server-key.pem")


@pytest.mark.parametrize("block", CONFIGURATIONS, ids=lambda block: f"line {block.line}")
def test_every_configuration_starts_a_server_that_reads_it_again(block, session, tmp_path):
    certify(tmp_path)
    save(session, block, hashed(session) if "$2b$" in block.text else "")

    session.run(lines(CHECK))
    session.start(lines(f"{START} -P server.pid", note="background"))
    printed = session.run(lines(RELOAD.replace("4711", "server.pid")))

    assert "rror" not in printed


def test_users_of_the_first_configuration_come_in_with_their_passwords_only(session):
    save(session, CONFIGURATIONS[0], hashed(session))
    session.start(lines(START, note="background"))

    session.run(lines("jetlake rtt --user ada --password secret", "jetlake rtt --user bob --password bobs"))
    with pytest.raises(AssertionError, match="The server rejected the login"):
        session.run(lines("jetlake rtt --user ada --password wrong"))


def test_placeholder_of_the_guide_is_refused(session):
    session.save(CONFIGURATIONS[0]._replace(note="file server.conf"))

    with pytest.raises(AssertionError, match="not a bcrypt hash"):
        session.run(lines(CHECK))


def test_messages_are_encrypted_with_a_key_from_the_environment(session, tmp_path):
    save(session, CONFIGURATIONS[-1])
    session.start(lines(ENCRYPTING.text, note="background"))

    session.run(
        lines("jetlake stream add S --subjects s --defaults", "jetlake pub s plaintext-of-a-message --jetstream")
    )

    stored = b"".join(path.read_bytes() for path in (tmp_path / "data").rglob("*") if path.is_file())
    assert stored
    assert b"a-plain-text" not in stored
