"""The manifests that the guide shows can run."""

import re
from pathlib import Path

from jetlake.agents.machines.manifest import parse_manifest
from jetlake.agents.machines.schema import schema_problems

GUIDE = Path(__file__).parents[3] / "docs" / "guides" / "autonomous_agents.md"

REST = """
name: rollout
version: 1.0.0
initial_state: WAIT
transitions:
  - {name: deploy, from: [WAIT], destination: DEPLOYING}
  - {name: done, from: [DEPLOYING], destination: WAIT}
  - {name: failed, from: [DEPLOYING], destination: WAIT}
"""


def test_every_manifest_of_the_guide_can_run():
    blocks = re.findall(r"```yaml\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    whole = [block for block in blocks if "initial_state" in block]
    watchers = [REST + block for block in blocks if block.startswith("watchers:")]

    assert len(whole) == len(watchers) == 1
    for text in whole + watchers:
        parse_manifest(text, "machine.yaml")
        assert schema_problems(text, "machine.yaml") == []
