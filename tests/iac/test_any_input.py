"""Whatever a file says, it is read or refused with its location, and what is read can be planned or is refused too."""

import json

import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jetlake.errors import ConfigurationError
from jetlake.iac.actual import Actual
from jetlake.iac.fields import CONSUMER, KEY_VALUE, STREAM
from jetlake.iac.render import render
from tests.iac.servers import declared, planned

NAMES = st.sampled_from(
    [*(field.name for field in (*STREAM, *CONSUMER, *KEY_VALUE)), "consumers", "src", "external", "tags"]
)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.sampled_from(
        ["", "A", "B", "1d", "10GiB", "orders.>", "2026-01-01T00:00:00Z", "${X}", "file", "explicit", "100%", "\x00"]
    ),
    st.sampled_from(["A\ud800", "ü", "007", "1.10", "$${X}"]),
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3), max_leaves=6
)
THINGS = st.dictionaries(NAMES, VALUES, max_size=5)
THING_NAMES = st.sampled_from(["A", "B", "stream", "A\ud800", "${X:-B}"])
SECTIONS = st.sampled_from(
    [
        "streams",
        "consumers",
        "key_value",
        "object_stores",
        "dead_letters",
        "templates",
        "defaults",
        "variables",
        "project",
        "config",
    ]
)
DOCUMENTS = st.dictionaries(
    SECTIONS,
    st.one_of(st.lists(THINGS, max_size=2), st.dictionaries(THING_NAMES, THINGS, max_size=2), VALUES),
)
# One odd value hides all others, so some documents are almost right.
TEXTS = st.sampled_from(["A", "B", "a.>", ""]) | st.none()
ORIGINS = st.fixed_dictionaries({}, optional={"name": TEXTS, "filter_subject": TEXTS})
COPIES = st.fixed_dictionaries({}, optional={"mirror": ORIGINS, "sources": st.lists(ORIGINS, max_size=2)})
ALMOST_RIGHT = st.dictionaries(
    st.sampled_from(["streams", "key_value"]), st.dictionaries(THING_NAMES, COPIES, max_size=2), min_size=1
)
MANIFESTS = st.fixed_dictionaries(
    {
        "apiVersion": st.just("jetstream.nats.io/v1beta2"),
        "kind": st.sampled_from(["Stream", "Consumer", "KeyValue", "ObjectStore", "StreamTemplate", "List"]),
    },
    optional={"spec": THINGS, "metadata": THINGS, "items": VALUES},
)


FORMS = st.sampled_from([("declaration.yaml", yaml.safe_dump), ("declaration.json", json.dumps)])
MANY = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=150, deadline=None
)


def answer_to(folder, document, form):
    """Return the plan for a document, or why it is refused."""
    name, write = form
    try:
        plan = planned(declared(folder, write(document), name), Actual(has_templates=True))
    except ConfigurationError as error:
        return str(error)
    return "\n".join(line.text for line in render(plan))


@MANY
@given(DOCUMENTS | MANIFESTS | VALUES, FORMS)
def test_any_document_is_read_or_refused(tmp_path, document, form):
    assert answer_to(tmp_path, document, form)


@MANY
@given(ALMOST_RIGHT, FORMS)
def test_a_document_that_is_almost_right_is_read_or_refused(tmp_path, document, form):
    assert answer_to(tmp_path, document, form)
