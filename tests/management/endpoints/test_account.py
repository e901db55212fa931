"""What an account is told about itself."""

import msgspec

from jetlake.management.streams.context import StreamAccountLimits
from tests.management.api_twin import SETTINGS, ApiTwin


def test_usage_reservations_and_limits_are_told():
    limits = StreamAccountLimits(max_memory=1_000, max_storage=2_000, max_ack_pending=7, max_bytes_required=True)
    api = ApiTwin(msgspec.structs.replace(SETTINGS, accounts={"$G": limits}, domain="hub"))
    api.ask("STREAM.CREATE.S", {"name": "S", "max_bytes": 500})
    api.ask("STREAM.CREATE.T", {"name": "T", "max_bytes": 300, "storage": "memory"})
    api.publish("S", "S", b"hello")
    api.publish("T", "T", b"hello")

    answer = api.ask("INFO")

    assert (answer["memory"], answer["storage"]) == (22, 36)
    assert (answer["reserved_memory"], answer["reserved_storage"]) == (300, 500)
    assert (answer["streams"], answer["consumers"], answer["domain"]) == (2, 0, "hub")
    assert answer["limits"]["max_ack_pending"] == 7
    assert answer["limits"]["max_bytes_required"]


def test_requests_are_counted_by_account_and_without_the_one_that_asks():
    accounts = {"A": StreamAccountLimits(), "B": StreamAccountLimits()}
    api = ApiTwin(msgspec.structs.replace(SETTINGS, accounts=accounts))

    api.ask("STREAM.NAMES", account="A")
    api.ask("STREAM.INFO.NOPE", account="A")
    api.request("FOO", account="A")

    assert api.ask("INFO", account="A")["api"] == {"level": 5, "total": 2, "errors": 1}
    assert api.ask("INFO", account="A")["api"] == {"level": 5, "total": 3, "errors": 1}
    assert api.ask("INFO", account="B")["api"] == {"level": 5, "total": 0, "errors": 0}
