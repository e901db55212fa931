"""The comparison of passwords."""

import bcrypt
import pytest

from jetlake.server.authentication import passwords
from jetlake.server.authentication.passwords import Passwords, is_bcrypt

HASH = bcrypt.hashpw(b"secret", bcrypt.gensalt(4)).decode()


@pytest.mark.parametrize(
    ("stored", "is_hash"),
    [("$2a$11$x", True), ("$2b$04$", True), ("$2y$10$x", True), ("$2c$10$x", False), ("2a$10$x", False), ("", False)],
)
def test_hash_is_known_by_its_beginning(stored, is_hash):
    assert is_bcrypt(stored) is is_hash


def test_right_password_is_remembered_and_a_wrong_one_is_not(monkeypatch):
    compared = []
    monkeypatch.setattr(passwords, "_match_bcrypt", lambda _, given: compared.append(given) or given == "secret")
    memory = Passwords()

    answers = [memory.match(HASH, given) for given in ("secret", "secret", "wrong", "wrong", "secret")]

    assert answers == [True, True, False, False, True]
    assert compared == ["secret", "wrong", "wrong"]


def test_changed_hash_is_compared_again():
    memory = Passwords()
    other = bcrypt.hashpw(b"other", bcrypt.gensalt(4)).decode()

    assert memory.match(HASH, "secret")
    assert not memory.match(other, "secret")
    assert memory.match(other, "other")


def test_memory_has_a_limit(monkeypatch):
    monkeypatch.setattr(passwords, "_match_bcrypt", lambda *_: True)
    monkeypatch.setattr(passwords, "REMEMBERED_MAX", 3)
    memory = Passwords()

    for number in range(10):
        memory.match(HASH, str(number))

    assert len(memory._right) == 3


def test_only_72_bytes_of_a_password_count_as_in_go():
    long = bcrypt.hashpw(b"x" * 72, bcrypt.gensalt(4)).decode()

    assert Passwords().match(long, "x" * 100)
    assert not Passwords().match(long, "x" * 71)


@pytest.mark.parametrize("stored", ["$2a$04$", "$2a$04$short", "$2a$99$" + "x" * 53, "$2x$04$" + "\u00e9" * 53])
def test_damaged_hash_matches_nothing(stored):
    assert not Passwords().match(stored, "secret")
    assert not Passwords().match(stored, "")
