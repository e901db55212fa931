"""Pages of lists."""

from hypothesis import given
from hypothesis import strategies as st

from jetlake.management.wire.paging import page_of


@given(st.integers(0, 20), st.integers(-30, 30), st.integers(1, 10))
def test_page_is_a_part_of_the_list(count, offset, limit):
    items = list(range(count))

    page = page_of(items, offset, limit)

    assert page.fields == {"total": count, "offset": min(max(offset, 0), count), "limit": limit}
    assert list(page.items) == items[page.offset :][:limit]
