"""Two configurations, compared as in 2020."""

from jetlake.cli.preview.struct_diff import struct_diff


def fields(**changes):
    return [(name, changes.get(name, "1")) for name in "ABCDEFGH"]


def test_equal_ones_have_no_difference():
    assert struct_diff("T", fields(), fields()) == ""


def test_what_differs_is_shown_with_two_neighbours_and_how_many_more():
    shown = struct_diff("T", fields(), fields(D="2"))

    assert shown.splitlines() == [
        "  T{",
        "        ... // 1 identical field",
        "        B: 1,",
        "        C: 1,",
        "-       D: 1,",
        "+       D: 2,",
        "        E: 1,",
        "        F: 1,",
        "        ... // 2 identical fields",
        "  }",
    ]


def test_values_stand_below_each_other():
    shown = struct_diff("T", [("Long", "1"), ("B", "1")], [("Long", "1"), ("B", "2")])

    assert shown.splitlines()[1:-1] == ["        Long: 1,", "-       B:    1,", "+       B:    2,"]
