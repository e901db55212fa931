"""`$JS.ENABLED` and `$JS.INFO`, which both dialects have: an answer serves the readers of both."""

from typing import Any

from jetlake.management.context import ApiContext
from jetlake.management.preview import answers
from jetlake.management.requests.calls import Call


class AccountAnswers:
    """The endpoints, with what they work on."""

    def __init__(self, api: ApiContext) -> None:
        self._api = api

    def enabled(self, _call: Call) -> bytes:
        """Say that this account may store; one that may not has been refused before."""
        return answers.OK

    def info(self, call: Call) -> bytes:
        """Return what the account uses and may use. What has no limit of its own has the server's, as it had then."""
        settings = self._api.settings()
        usage = self._api.accounts.usage(call.account)
        limits = settings.accounts[call.account]
        count = len(self._api.catalog.streams_of(call.account))
        described: dict[str, Any] = {
            "memory": usage.memory,
            "storage": usage.storage,
            "streams": count,
            "msg_sets": count,
            "limits": {
                "max_memory": limits.max_memory if limits.max_memory >= 0 else settings.server.max_memory,
                "max_storage": limits.max_storage if limits.max_storage >= 0 else settings.server.max_storage,
                "max_streams": limits.max_streams,
                "max_consumers": limits.max_consumers,
                "max_msg_sets": limits.max_streams,
                "max_observables": limits.max_consumers,
            },
        }
        return answers.document(described)
