"""`ClaimsStore`: the claims of accounts in a folder, one file each, named by the key of the account: `A….jwt`.

The files are those of nats-server's full and cache resolvers, so a folder can be moved in either direction.

Durability: `save` returns when the claims would survive a power cut. They are written beside, synced, renamed, and the
folder is synced. A crash leaves the old file or the new one, whole, and at most an unfinished file that the next `open`
removes. So a file that cannot be read as claims was not left by this server, and is passed over with a warning.

Invariant: what `accounts` names has a file, and `digest` is of exactly these files.
"""

import hashlib
import os
import time
from collections import OrderedDict
from collections.abc import Callable
from threading import Lock

from jetlake.errors import StartError, reason_of
from jetlake.server.nkeys import is_public_account_key

SUFFIX = ".jwt"
DELETED_SUFFIX = ".deleted"
UNFINISHED_SUFFIX = ".unfinished"

FILE_MODE = 0o600
"""Claims are not secret, but who is in them is nobody else's business."""
FOLDER_MODE = 0o700

FILE_BYTES_MAX = 2 * 1024 * 1024
"""Twice the largest token: what is larger is something else and is not read into memory."""

DIGEST_BYTES = hashlib.sha256().digest_size


class StoreFullError(Exception):
    """There are as many claims as there may be."""


class ClaimsStore:
    """The files of one folder. Any thread may call.

    With `evicts`, claims that were not used for the longest make room for others; else a full folder refuses them.
    `keep_s` is how long claims stay that nobody uses; 0 = for ever.
    """

    def __init__(
        self,
        directory: str,
        *,
        accounts_max: int | None = None,
        evicts: bool = False,
        keep_s: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.directory = os.path.abspath(directory)
        self._accounts_max = accounts_max
        self._evicts = evicts
        self._keep_s = keep_s
        self._clock = clock
        self._lock = Lock()
        # The digest of each file, and when it was used; the one that was not used for the longest stands first.
        self._entries: OrderedDict[str, tuple[bytes, float]] = OrderedDict()

    def open(self) -> None:
        """Make the folder, and find what is in it. Raises `StartError`."""
        try:
            os.makedirs(self.directory, mode=FOLDER_MODE, exist_ok=True)
            for name in os.listdir(self.directory):
                if name.endswith(UNFINISHED_SUFFIX):
                    os.remove(os.path.join(self.directory, name))
            self.scan()
        except OSError as error:
            raise StartError(
                f"The claims of accounts cannot be kept in {self.directory}: {reason_of(error)}; "
                "choose another folder with `dir` in the block resolver"
            ) from error

    def scan(self) -> list[str]:
        """Find what is in the folder, and return the accounts whose claims are not those of before."""
        found: dict[str, bytes] = {}
        for name in sorted(os.listdir(self.directory)):
            account = name.removesuffix(SUFFIX)
            if name.endswith(SUFFIX) and is_public_account_key(account):
                text = self._read(account)
                if text:
                    found[account] = _digest_of(text)
        with self._lock:
            before = {account: digest for account, (digest, _) in self._entries.items()}
            now = self._clock()
            self._entries = OrderedDict((account, (digest, now)) for account, digest in found.items())
        return [account for account in {**before, **found} if before.get(account) != found.get(account)]

    def accounts(self) -> list[str]:
        """Return the keys of all accounts that have a file."""
        with self._lock:
            return sorted(self._entries)

    def digest(self) -> bytes:
        """Return a digest of all claims, whatever their order: by it two servers see whether they have the same."""
        with self._lock:
            total = bytes(DIGEST_BYTES)
            for digest, _ in self._entries.values():
                total = bytes(one ^ other for one, other in zip(total, digest, strict=True))
            return total

    def load(self, account: str) -> str:
        """Return the claims of an account; empty = there are none. A file that a user put there is found, too."""
        if not is_public_account_key(account):
            return ""
        with self._lock:
            if self._is_outdated(account):
                self._forget(account)
                return ""
            text = self._read(account)
            if text:
                self._entries[account] = (_digest_of(text), self._clock())
                self._entries.move_to_end(account)
            return text

    def save(self, account: str, text: str) -> bool:
        """Keep claims, and return whether they are others than before. Raises `OSError`, `StoreFullError`."""
        assert is_public_account_key(account), "the caller has checked the claims"
        digest = _digest_of(text)
        with self._lock:
            known = self._entries.get(account)
            if known is None:
                self._make_room()
            if known is None or known[0] != digest:
                self._write(account, text)
            self._entries[account] = (digest, self._clock())
            self._entries.move_to_end(account)
            return known is None or known[0] != digest

    def delete(self, account: str, *, keeps_file: bool) -> bool:
        """Delete claims, and return whether there were any. With `keeps_file` the file stays, under another name."""
        if not is_public_account_key(account):
            return False
        path = self._path(account)
        with self._lock:
            try:
                if keeps_file:
                    os.replace(path, f"{path}{DELETED_SUFFIX}")
                else:
                    os.remove(path)
            except FileNotFoundError:
                return False
            finally:
                self._entries.pop(account, None)
            self._sync_folder()
            return True

    def _make_room(self) -> None:
        if self._accounts_max is None or len(self._entries) < self._accounts_max:
            return
        if not self._evicts:
            raise StoreFullError("jwt store is full")
        self._forget(next(iter(self._entries)))

    def _is_outdated(self, account: str) -> bool:
        entry = self._entries.get(account)
        return bool(self._keep_s) and entry is not None and entry[1] + self._keep_s < self._clock()

    def _forget(self, account: str) -> None:
        self._entries.pop(account, None)
        try:
            os.remove(self._path(account))
        except FileNotFoundError:
            # Another process was faster.
            return

    def _read(self, account: str) -> str:
        try:
            with open(self._path(account), encoding="ascii") as file:
                text = file.read(FILE_BYTES_MAX + 1).strip()
        except (FileNotFoundError, UnicodeDecodeError):
            return ""
        return text if len(text) <= FILE_BYTES_MAX else ""

    def _write(self, account: str, text: str) -> None:
        path = self._path(account)
        unfinished = f"{path}{UNFINISHED_SUFFIX}"
        descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, FILE_MODE)
        with open(descriptor, "w", encoding="ascii") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, path)
        self._sync_folder()

    def _sync_folder(self) -> None:
        descriptor = os.open(self.directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def _path(self, account: str) -> str:
        return os.path.join(self.directory, f"{account}{SUFFIX}")


def _digest_of(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()
