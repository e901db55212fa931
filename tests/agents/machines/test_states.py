"""The state machine, held against a model: whatever events come, it is where the manifest says."""

from hypothesis import given, settings
from hypothesis import strategies as st

from jetlake.agents.machines.manifest import Manifest, Transition
from jetlake.agents.machines.states import StateChange, StateMachine

STATES = ["A", "B", "C", "D"]
EVENTS = ["e", "f", "g"]


@st.composite
def manifests(draw):
    """Machines in which an event leads from a state to one other at most."""
    table = draw(st.dictionaries(st.tuples(st.sampled_from(EVENTS), st.sampled_from(STATES)), st.sampled_from(STATES)))
    transitions: dict[tuple[str, str], list[str]] = {}
    for (event, source), destination in table.items():
        transitions.setdefault((event, destination), []).append(source)
    return table, Manifest(
        name="m",
        version="1",
        initial_state=draw(st.sampled_from(STATES)),
        transitions=tuple(
            Transition(name=event, sources=tuple(sources), destination=destination)
            for (event, destination), sources in transitions.items()
        ),
        watchers=(),
    )


@given(manifests(), st.lists(st.sampled_from([*EVENTS, "unknown"]), max_size=30))
@settings(max_examples=200, deadline=None)
def test_events_lead_where_the_manifest_says_and_nowhere_else(drawn, events):
    table, manifest = drawn
    machine, state = StateMachine(manifest), manifest.initial_state

    for event in events:
        expected = table.get((event, state))
        assert machine.can(event) == (expected is not None)
        assert (event in machine.events()) == machine.can(event)
        change = machine.fire(event)
        if expected is None or expected == state:
            assert change is None
        else:
            assert change == StateChange(event, state, expected)
            state = expected
        assert machine.state == state
        assert state in manifest.states


@given(manifests(), st.text(max_size=5))
@settings(max_examples=100, deadline=None)
def test_a_machine_resumes_in_a_state_it_has_and_begins_anew_otherwise(drawn, saved):
    _, manifest = drawn

    assert StateMachine(manifest, saved).state == (saved if saved in manifest.states else manifest.initial_state)
