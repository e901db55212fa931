"""Claims in a folder: what is kept, what makes room, and what a kill leaves."""

import hashlib
import os
import signal
import stat
import subprocess
import sys
import time

import pytest

from jetlake.errors import StartError
from jetlake.server.claims.model import read_account
from jetlake.server.claims.store import ClaimsStore, StoreFullError
from tests.compatibility.claims import Operator

OPERATOR = Operator()


def accounts(count):
    return [OPERATOR.add_account() for _ in range(count)]


def opened(folder, **options):
    store = ClaimsStore(str(folder), **options)
    store.open()
    return store


def test_claims_are_found_again_by_another_server(tmp_path):
    (account,) = accounts(1)
    opened(tmp_path).save(account.public, "text")

    store = opened(tmp_path)

    assert store.load(account.public) == "text"
    assert store.accounts() == [account.public]


def test_files_are_for_the_server_alone(tmp_path):
    (account,) = accounts(1)
    store = opened(tmp_path / "deep" / "jwt")
    store.save(account.public, "text")

    modes = [stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "deep/jwt", *(tmp_path / "deep/jwt").iterdir())]

    assert modes == [0o700, 0o600]


def test_saving_says_whether_something_changed(tmp_path):
    (account,) = accounts(1)
    store = opened(tmp_path)

    assert store.save(account.public, "one")
    assert not store.save(account.public, "one")
    assert store.save(account.public, "two")


@pytest.mark.parametrize(
    "key",
    ["", "../../etc/passwd", "A" * 56, "x", OPERATOR.key.public, OPERATOR.admin.key.public],
    ids=["empty", "a path", "no key", "a letter", "an operator", "a user"],
)
def test_only_keys_of_accounts_name_files(tmp_path, key):
    (tmp_path.parent / "passwd.jwt").write_text("secret")
    store = opened(tmp_path)

    assert store.load(key) == ""
    assert not store.delete(key, keeps_file=False)


def test_other_files_in_the_folder_are_left_alone(tmp_path):
    (account,) = accounts(1)
    (tmp_path / "notes.txt").write_text("x")
    (tmp_path / "x.jwt").write_text("x")
    (tmp_path / f"{account.public}.jwt.deleted").write_text("x")

    store = opened(tmp_path)

    assert store.accounts() == []
    assert len(list(tmp_path.iterdir())) == 3


def test_unreadable_file_is_not_there(tmp_path):
    one, other = accounts(2)
    (tmp_path / f"{one.public}.jwt").write_bytes(b"\xff\xfe")
    (tmp_path / f"{other.public}.jwt").write_bytes(b"")

    store = opened(tmp_path)

    assert store.load(one.public) == store.load(other.public) == ""


def test_digest_does_not_depend_on_the_order(tmp_path):
    one, other = accounts(2)
    first, second = opened(tmp_path / "1"), opened(tmp_path / "2")
    first.save(one.public, "a")
    first.save(other.public, "b")
    second.save(other.public, "b")
    second.save(one.public, "c")
    second.save(one.public, "a")

    expected = bytes(x ^ y for x, y in zip(hashlib.sha256(b"a").digest(), hashlib.sha256(b"b").digest(), strict=True))
    assert first.digest() == second.digest() == opened(tmp_path / "1").digest() == expected


def test_full_folder_refuses_others_and_takes_updates(tmp_path):
    one, other = accounts(2)
    store = opened(tmp_path, accounts_max=1)
    store.save(one.public, "a")

    with pytest.raises(StoreFullError):
        store.save(other.public, "b")

    assert store.save(one.public, "c")


def test_cache_makes_room_for_what_is_used(tmp_path):
    oldest, used, new = accounts(3)
    store = opened(tmp_path, accounts_max=2, evicts=True)
    store.save(oldest.public, "a")
    store.save(used.public, "b")
    store.load(oldest.public)

    store.save(new.public, "c")

    assert sorted(store.accounts()) == sorted([oldest.public, new.public])
    assert not (tmp_path / f"{used.public}.jwt").exists()


def test_cache_forgets_what_nobody_uses(tmp_path):
    (account,) = accounts(1)
    now = [0.0]
    store = opened(tmp_path, keep_s=60, clock=lambda: now[0])
    store.save(account.public, "a")
    now[0] = 50
    assert store.load(account.public) == "a"
    now[0] = 109
    assert store.load(account.public) == "a"

    now[0] = 170

    assert store.load(account.public) == ""
    assert list(tmp_path.iterdir()) == []


def test_scan_tells_what_is_new_changed_and_gone(tmp_path):
    new, changed, gone, same = accounts(4)
    store = opened(tmp_path)
    for account in (changed, gone, same):
        store.save(account.public, "a")

    (tmp_path / f"{new.public}.jwt").write_text("n")
    (tmp_path / f"{changed.public}.jwt").write_text("b")
    (tmp_path / f"{gone.public}.jwt").unlink()

    assert sorted(store.scan()) == sorted(account.public for account in (new, changed, gone))


def test_unfinished_file_of_a_crash_is_removed(tmp_path):
    (account,) = accounts(1)
    (tmp_path / f"{account.public}.jwt.unfinished").write_text("half")

    opened(tmp_path)

    assert list(tmp_path.iterdir()) == []


def test_folder_that_cannot_be_made_is_an_error_with_what_to_do(tmp_path):
    (tmp_path / "file").write_text("")

    with pytest.raises(StartError, match="choose another folder"):
        opened(tmp_path / "file" / "jwt")


WRITER = """
import sys
from jetlake.server.claims.store import ClaimsStore
store = ClaimsStore(sys.argv[1])
store.open()
lines = [line.split() for line in open(sys.argv[2])]
print("ready", flush=True)
while True:
    for key, token in lines:
        store.save(key, token)
"""


def test_kill_in_the_middle_of_updates_leaves_whole_files(tmp_path):
    """Each file is the old claims or the new ones, whatever the moment."""
    changing = accounts(3)
    versions = [(account.public, account.jwt(name=f"{number}" * 400)) for number in range(4) for account in changing]
    known = {token for _, token in versions}
    (tmp_path / "versions").write_text("\n".join(" ".join(each) for each in versions))
    folder = tmp_path / "jwt"

    for round_number in range(12):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(folder), str(tmp_path / "versions")], stdout=subprocess.PIPE
        )
        assert writer.stdout is not None
        writer.stdout.readline()
        time.sleep(0.003 * round_number)
        os.kill(writer.pid, signal.SIGKILL)
        writer.wait()
        writer.stdout.close()

        for path in folder.glob("*.jwt"):
            assert path.read_text() in known
        store = opened(folder)
        for key in store.accounts():
            assert read_account(store.load(key)).sub == key
        assert not list(folder.glob("*.unfinished"))
    assert len(list(folder.iterdir())) == len(changing)
