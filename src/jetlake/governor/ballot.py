"""`Ballot`: one claim to a slot, published as often as it takes to learn what became of it.

All tries of a ballot have the same message id, so a try whose acknowledgement is lost is not a ghost: the next try is
answered as a duplicate, with the sequence of the lease that is ours already. A try that comes late, out of the buffers
of a broken connection, is either that duplicate or becomes the lease that the next try finds.

Invariant: a ballot stands for at most one lease at a time, and `leaves_no_stray_lease` is False as long as one may
exist that its owner does not know of.
"""

import uuid
from typing import Any

import msgspec

from jetlake.client.api import Api
from jetlake.errors import ApiError, ClientError
from jetlake.governor import catalog
from jetlake.governor.catalog import MESSAGE_ID
from jetlake.governor.layout import stream_of

ANSWER_S_MAX = 2.0
"""How long one try waits for its acknowledgement; it can be repeated safely, so there is no reason to wait long."""

FULL = 10077
"""The error of a stream that has as many messages as it may: all slots are taken."""

_TEMPORARY = frozenset((503, 500))
"""Errors of a server that may be gone the next moment: a leader is being elected, a disk is slow."""


class Entered(msgspec.Struct, frozen=True):
    """The slot is ours."""

    sequence: int


class Full(msgspec.Struct, frozen=True):
    """All slots are taken."""


class Unknown(msgspec.Struct, frozen=True):
    """The outcome is unknown; try again."""

    reason: str


Outcome = Entered | Full | Unknown


class Ballot:
    """One claim of one holder to one slot of one governor."""

    def __init__(self, api: Api, name: str, subject: str, holder: str) -> None:
        self._api = api
        self._name = name
        self._subject = subject
        self._holder = holder
        # The same for all tries, until a lease that came of them is gone again.
        self._message_id = uuid.uuid4().hex
        self._uncertain = False

    @property
    def leaves_no_stray_lease(self) -> bool:
        """Whether no try of it can have left a lease without an owner."""
        return not self._uncertain

    async def cast(self) -> Outcome:
        """Try once. Raises `ClientError` when trying again cannot help."""
        from nats.errors import Error, NoRespondersError

        was_uncertain, self._uncertain = self._uncertain, True
        try:
            message = await self._api.connection.request(
                self._subject, self._holder.encode(), timeout=ANSWER_S_MAX, headers={MESSAGE_ID: self._message_id}
            )
            answer = msgspec.json.decode(message.data, type=dict[str, Any])
        except NoRespondersError:
            self._uncertain = was_uncertain
            return await self._explain_silence()
        except (TimeoutError, Error, OSError) as error:
            reason = str(error) or type(error).__name__
            if self._api.connection.is_closed:
                raise ClientError(f"the connection to {self._api.access.shown} is closed: {reason}") from error
            return Unknown(reason)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise ClientError(f"{self._subject} was not answered by a stream; another program listens there") from error
        if "error" in answer:
            return self._refused(answer["error"], was_uncertain=was_uncertain)
        return await self._accepted(int(answer.get("seq", 0)), is_duplicate=bool(answer.get("duplicate", False)))

    def successor(self) -> "Ballot":
        """Return a new claim of the same holder, for when the lease of this one has been given back."""
        return Ballot(self._api, self._name, self._subject, self._holder)

    async def withdraw(self) -> bool:
        """Remove the lease that a try without an answer may have left; return whether that is certain now.

        It is tried once more: what is answered comes after all earlier tries, and has their lease if there is one. A
        look at the stream would not do, because a try may still be on its way into it.
        """
        if self.leaves_no_stray_lease:
            return True
        try:
            outcome = await self.cast()
            if isinstance(outcome, Unknown):
                return False
            if isinstance(outcome, Entered):
                await delete_lease(self._api, self._name, outcome.sequence)
        except ApiError as error:
            return error.code not in _TEMPORARY
        except ClientError:
            # The governor itself is gone, or the server did not answer.
            return await self._is_gone()
        self.mark_owned()
        return True

    async def _is_gone(self) -> bool:
        try:
            return await catalog.find(self._api, self._name) is None
        except ClientError:
            return False

    def _renew_id(self) -> None:
        self._message_id = uuid.uuid4().hex
        self._uncertain = False

    async def _accepted(self, sequence: int, *, is_duplicate: bool) -> Outcome:
        if is_duplicate:
            try:
                lease = await catalog.lease_at(self._api, self._name, sequence, timeout_s=ANSWER_S_MAX)
            except ClientError as error:
                return Unknown(str(error))
            if lease is None or lease.message_id != self._message_id:
                # It was ours, and has expired or was evicted before we knew of it.
                self._renew_id()
                return Unknown("the lease was lost before its acknowledgement came")
        # Until its owner has taken it over, a lease that nobody would release is possible.
        return Entered(sequence)

    def mark_owned(self) -> None:
        """Note that the owner of this ballot answers for its lease from now on."""
        self._uncertain = False

    def _refused(self, error: dict[str, Any], *, was_uncertain: bool) -> Outcome:
        if error.get("err_code") == FULL:
            self._uncertain = was_uncertain
            return Full()
        if error.get("code") in _TEMPORARY:
            return Unknown(str(error.get("description", "")))
        self._uncertain = was_uncertain
        raise ApiError(int(error.get("code", 0)), int(error.get("err_code", 0)), str(error.get("description", "")))

    async def _explain_silence(self) -> Outcome:
        """No responder: the governor is not there, or its stream is between two leaders."""
        try:
            settings = await catalog.find(self._api, self._name)
        except ClientError as error:
            return Unknown(str(error))
        if settings is None:
            raise catalog.unknown(self._name)
        if settings.subject != self._subject:
            raise ClientError(
                f"governor {self._name} belongs to the collective {settings.collective!r}: its subject is "
                f"{settings.subject}, not {self._subject}; give --collective {settings.collective}"
            )
        return Unknown("no responders")


async def delete_lease(api: Api, name: str, sequence: int) -> bool:
    """Delete a lease; False = it was gone already. Raises `ClientError`."""
    try:
        body = {"seq": sequence, "no_erase": True}
        await api.request(f"STREAM.MSG.DELETE.{stream_of(name)}", body, timeout_s=ANSWER_S_MAX)
    except ApiError as error:
        if error.error_code in _NO_MESSAGE:
            return False
        raise
    return True


_NO_MESSAGE = frozenset((10037, 10057, 10043))
"""No message found; the deletion failed because there is none; the sequence is not there."""
