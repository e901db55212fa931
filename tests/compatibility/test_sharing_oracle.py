"""What accounts share is decided as on nats-server, in made-up configurations.

More of it: `python -m tests.compatibility.sharing_oracle --decisions 1000000`.
"""

from __future__ import annotations

import os

import pytest

from tests.compatibility import sharing_oracle

DECISIONS = 5_000_000 if os.environ.get("JETLAKE_LONG") else 100_000


@pytest.mark.timeout(3_600 if os.environ.get("JETLAKE_LONG") else 120)
def test_both_servers_decide_the_same_about_imports_exports_mappings_and_permissions() -> None:
    tally = sharing_oracle.run(DECISIONS, seed=23)

    assert tally.differences == []
    assert tally.decisions >= DECISIONS
    assert tally.heard > DECISIONS // 50
