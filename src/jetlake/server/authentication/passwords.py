"""The comparison of passwords and tokens: plain ones in constant time, bcrypt hashes with a memory.

A bcrypt comparison takes about a tenth of a second on purpose. After a reload or a network failure all clients come at
once, so what has been found right is remembered, under a keyed digest that only this process can compute: the same hash
and the same password need not be compared again. A changed hash is another entry, so it is compared.
"""

import re
from collections import OrderedDict
from threading import Lock

REMEMBERED_MAX = 4096
"""Users of one server that log in repeatedly; each takes about 200 bytes."""

BCRYPT_PASSWORD_BYTES_MAX = 72
"""bcrypt does not look further, and its Python library refuses longer ones where Go's cuts them."""

_BCRYPT = re.compile(r"\$2[abxy]\$\d\d\$", re.ASCII)

_WHOLE_BCRYPT = re.compile(r"\$2[abxy]\$\d\d\$[./A-Za-z0-9]{53}", re.ASCII)

HASH_ADVICE = "it begins as one and has not its 60 characters; put in a real one, or a plain password"
"""What to say about the placeholder of a guide that was left in a configuration."""


def is_bcrypt(stored: str) -> bool:
    return _BCRYPT.match(stored) is not None


def is_usable(stored: str) -> bool:
    """Tell whether a stored password can ever be right: one that begins as a bcrypt hash must be a whole one."""
    return not is_bcrypt(stored) or _WHOLE_BCRYPT.fullmatch(stored) is not None


class HashNeededError(Exception):
    """Is raised when a comparison that must be quick would have to compute a hash."""


class Comparison:
    """The comparisons of one decision. `is_quick` ones know plain passwords and what is remembered, and never hash."""

    def __init__(self, passwords: "Passwords", *, is_quick: bool) -> None:
        self._passwords = passwords
        self._is_quick = is_quick
        self.has_hashed = False

    def match(self, stored: str, given: str) -> bool:
        """Tell whether the given password is the stored one. Raises `HashNeededError` if that is not known quickly."""
        if not is_bcrypt(stored):
            return equal(stored, given)
        if self._is_quick:
            if self._passwords.remembers(stored, given):
                return True
            raise HashNeededError
        self.has_hashed = True
        return self._passwords.match(stored, given)


class Passwords:
    """Compares; any thread may call."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._right: OrderedDict[bytes, None] = OrderedDict()
        self._secret = b""

    def match(self, stored: str, given: str) -> bool:
        """Tell whether the given password is the stored one."""
        if not is_bcrypt(stored):
            return equal(stored, given)
        if self.remembers(stored, given):
            return True
        mark = self._mark_of(stored, given)
        if not _match_bcrypt(stored, given):
            return False
        with self._lock:
            self._right[mark] = None
            if len(self._right) > REMEMBERED_MAX:
                self._right.popitem(last=False)
        return True

    def remembers(self, stored: str, given: str) -> bool:
        """Tell whether this password was found right for this hash before."""
        mark = self._mark_of(stored, given)
        with self._lock:
            if mark not in self._right:
                return False
            self._right.move_to_end(mark)
            return True

    def _mark_of(self, stored: str, given: str) -> bytes:
        # Only servers with hashes pay for these imports.
        import hmac
        import os

        with self._lock:
            if not self._secret:
                self._secret = os.urandom(32)
        content = stored.encode() + b"\0" + given.encode(errors="replace")
        return hmac.digest(self._secret, content, "sha256")


def equal(wanted: str, given: str) -> bool:
    """Compare two texts; the time it takes tells nothing about where they differ."""
    # Only servers that compare anything pay for loading OpenSSL.
    from hmac import compare_digest

    return compare_digest(wanted.encode(), given.encode(errors="replace"))


def _match_bcrypt(stored: str, given: str) -> bool:
    import bcrypt

    try:
        return bcrypt.checkpw(given.encode(errors="replace")[:BCRYPT_PASSWORD_BYTES_MAX], stored.encode())
    except ValueError:
        # The hash in the file is damaged: nobody has that password.
        return False
