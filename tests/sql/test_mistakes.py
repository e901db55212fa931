"""What DuckDB says of a mistake, in one sentence."""

from jetlake.sql.mistakes import sentence


def test_a_missing_column_is_named_with_the_nearest_one():
    text = (
        'Binder Error: Referenced column "subjct" not found in FROM clause!\n'
        'Candidate bindings: "subject", "stream"\n\nLINE 1: SELECT subjct\n               ^'
    )

    assert sentence(text) == "there is no column subjct; did you mean subject?"


def test_a_column_like_no_other_is_named_with_those_there_are():
    text = 'Binder Error: Referenced column "zzz" not found in FROM clause!\nCandidate bindings: "t.subject"'

    assert sentence(text) == "there is no column zzz; there are subject"


def test_a_syntax_error_shows_where_it_is():
    text = 'Parser Error: syntax error at or near "FORM"\n\nLINE 1: SELECT * FORM x\n                 ^'

    assert sentence(text) == 'syntax error at or near "FORM"\nLINE 1: SELECT * FORM x\n                 ^'
