"""Whatever a file says, it is read or refused with its location, and what is read can be planned or is refused too."""

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
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3), max_leaves=6
)
THINGS = st.dictionaries(NAMES, VALUES, max_size=5)
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
    ]
)
DOCUMENTS = st.dictionaries(
    SECTIONS,
    st.one_of(
        st.lists(THINGS, max_size=2), st.dictionaries(st.sampled_from(["A", "B", "stream"]), THINGS, max_size=2), VALUES
    ),
)
MANIFESTS = st.fixed_dictionaries(
    {
        "apiVersion": st.just("jetstream.nats.io/v1beta2"),
        "kind": st.sampled_from(["Stream", "Consumer", "KeyValue", "ObjectStore", "StreamTemplate", "List"]),
    },
    optional={"spec": THINGS, "metadata": THINGS, "items": VALUES},
)


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=150, deadline=None
)
@given(DOCUMENTS | MANIFESTS | VALUES)
def test_any_document_is_read_or_refused(tmp_path, document):
    try:
        plan = planned(declared(tmp_path, yaml.safe_dump(document)), Actual(has_templates=True))
        said = [line.text for line in render(plan)]
    except ConfigurationError as error:
        said = [str(error)]

    assert said
