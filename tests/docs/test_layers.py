"""The picture of the layers is that of the code."""

from __future__ import annotations

from tests.docs import layers


def test_picture_of_the_layers_is_up_to_date():
    assert layers.page() == layers.PAGE.read_text(encoding="utf-8"), "run `make reference`, and commit what it writes"
