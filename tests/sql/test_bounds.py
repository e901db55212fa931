"""The bounds of a condition: exactly its rows, or none."""

import pytest

pytest.importorskip("duckdb", reason="the extra `sql` is not installed")

from duckdb._sources.nodes import Binary, Col, In, Lit, Postfix, Unary

from jetlake.sql.bounds import Bounds, bounds_of


def sequence(comparison, number):
    return Binary(comparison, Col(("sequence",)), Lit(number, "BIGINT"))


def subject(text, comparison="="):
    return Binary(comparison, Col(("subject",)), Lit(text, "VARCHAR"))


def both(left, right):
    return Binary("AND", left, right)


CASES = {
    "from and to": (both(sequence(">=", 5), sequence("<", 10)), Bounds(5, 10)),
    "behind and up to": (both(sequence(">", 5), sequence("<=", 10)), Bounds(6, 11)),
    "one sequence": (sequence("=", 7), Bounds(7, 8)),
    "the narrowest of several": (both(sequence(">", 5), both(sequence(">", 8), sequence(">", 2))), Bounds(9)),
    "a subject": (both(subject("orders.eu"), sequence(">", 1)), Bounds(2, None, "orders.eu")),
    "a subject twice": (both(subject("a"), subject("a")), Bounds(subject="a")),
    "two subjects": (both(subject("a"), subject("b")), Bounds(subject="a", impossible=True)),
    "a pattern": (subject("orders.>"), None),
    "no subject": (subject(""), None),
    "an empty token": (subject("a..b"), None),
    "an empty token first": (subject(".a"), None),
    "an empty token last": (subject("a."), None),
    "another subject": (subject("a", "!="), None),
    "all but one sequence": (sequence("!=", 7), None),
    "either": (Binary("OR", sequence(">", 5), sequence("=", 1)), None),
    "either, and a range": (both(Binary("OR", sequence(">", 5), subject("a")), sequence("<", 9)), None),
    "not": (Unary("NOT", sequence(">", 5)), None),
    "another column": (Binary(">", Col(("time_ns",)), Lit(5, "BIGINT")), None),
    "null": (Postfix("IS NULL", Col(("sequence",))), None),
    "one of": (In(Col(("sequence",)), [Lit(1, "BIGINT")]), None),
}


@pytest.mark.parametrize(("condition", "expected"), CASES.values(), ids=CASES.keys())
def test_bounds_are_exact_or_there_are_none(condition, expected):
    assert bounds_of(condition) == expected
