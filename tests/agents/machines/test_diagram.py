"""Diagrams: well-formed, with everything of the machine, and nothing covers anything."""

import xml.etree.ElementTree as ElementTree
from itertools import combinations

from hypothesis import given, settings

from jetlake.agents.machines.diagram import _links, _state_size, _watchers_in, draw_dot, draw_svg
from jetlake.agents.machines.layout import arrange
from jetlake.agents.machines.manifest import parse_manifest
from tests.agents.machines.test_manifest import ROLLING_UPDATE
from tests.agents.machines.test_states import manifests

SVG = "{http://www.w3.org/2000/svg}"


def test_a_diagram_shows_states_events_and_watchers():
    manifest = parse_manifest(ROLLING_UPDATE, "machine.yaml")

    root = ElementTree.fromstring(draw_svg(manifest))

    texts = ["".join(node.itertext()) for node in root.iter(f"{SVG}text")]
    assert "updater 1.2.3" in texts
    assert {"WAIT", "REGION_UPDATE", "CHECK", "wanted (kv)", "nightly (schedule)"} <= set(texts)
    assert any(text.startswith("update_deployment") for text in texts)
    assert "update_deployment: A new version is wanted" in draw_svg(manifest)


def test_names_cannot_break_the_picture():
    text = ROLLING_UPDATE.replace("WAIT", "'<&\">'").replace("name: updater", "name: '</svg><script>'")

    root = ElementTree.fromstring(draw_svg(parse_manifest(text, "machine.yaml")))

    assert not list(root.iter(f"{SVG}script"))


def test_the_language_of_graphviz_marks_the_initial_state():
    text = draw_dot(parse_manifest(ROLLING_UPDATE, "machine.yaml"))

    assert text.startswith("digraph fsm {")
    assert '"WAIT" -> "REGION_UPDATE" [ label = "update_deployment" ];' in text
    assert '"WAIT" [color = "red"];' in text


@given(manifests())
@settings(max_examples=100, deadline=None)
def test_nothing_covers_anything(drawn):
    _, manifest = drawn
    sizes = {state: _state_size(state, _watchers_in(manifest, state)) for state in manifest.states}

    diagram = arrange(manifest.initial_state, sizes, list(_links(manifest)))
    ElementTree.fromstring(draw_svg(manifest))

    boxes = [*diagram.states.values(), *(edge.label for edge in diagram.edges)]
    for one, other in combinations(boxes, 2):
        beside = one.right <= other.left + 1e-6 or other.right <= one.left + 1e-6
        assert beside or one.bottom <= other.top + 1e-6 or other.bottom <= one.top + 1e-6
    assert all(box.left >= -1e-6 and box.right <= diagram.width + 1e-6 for box in boxes)
    assert all(box.top >= 0 and box.bottom <= diagram.height + 1e-6 for box in boxes)
