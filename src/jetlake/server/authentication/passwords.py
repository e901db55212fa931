"""The comparison of passwords and tokens: plain ones in constant time, bcrypt hashes with a memory.

A bcrypt comparison takes about a tenth of a second on purpose. After a reload or a network failure all clients come at
once, so what has been found right is remembered, under a keyed digest that only this process can compute: the same hash
and the same password need not be compared again. A changed hash is another entry, so it is compared.
"""

import re
from collections import OrderedDict
from threading import Lock

REMEMBERED_MAX = 4096
"""Users of one server that log in again and again; each takes about 200 bytes."""

BCRYPT_PASSWORD_BYTES_MAX = 72
"""bcrypt does not look further, and its Python library refuses longer ones where Go's cuts them."""

_BCRYPT = re.compile(r"\$2[abxy]\$\d\d\$", re.ASCII)


def is_bcrypt(stored: str) -> bool:
    return _BCRYPT.match(stored) is not None


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
        mark = self._mark_of(stored, given)
        with self._lock:
            if mark in self._right:
                self._right.move_to_end(mark)
                return True
        if not _match_bcrypt(stored, given):
            return False
        with self._lock:
            self._right[mark] = None
            if len(self._right) > REMEMBERED_MAX:
                self._right.popitem(last=False)
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
