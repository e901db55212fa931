"""What names of buckets and keys may be."""

import pytest

from jetlake.errors import ConfigurationError
from jetlake.kv.names import check_bucket, check_filter, check_key, check_new_key


@pytest.mark.parametrize("key", ["a", "auth.username", "a/b=c_d-e.F9", "x" * 500])
def test_a_good_key_is_returned(key):
    assert check_key(key) == key
    assert check_new_key(key) == key


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        ("", "it is empty"),
        (".a", "begin or end with a dot"),
        ("a.", "begin or end with a dot"),
        ("a..b", "two in a row"),
        ("a b", "use letters"),
        ("a*", "use letters"),
        ("a.>", "use letters"),
        ("ä", "use letters"),
        ("a\n", "use letters"),
        (7, "use letters"),
    ],
)
def test_a_bad_key_is_refused_with_the_reason(key, reason):
    with pytest.raises(ConfigurationError, match=reason):
        check_key(key)


def test_a_reserved_key_cannot_be_written():
    assert check_key("_kv.x") == "_kv.x"
    with pytest.raises(ConfigurationError, match="reserved"):
        check_new_key("_kv.x")


@pytest.mark.parametrize("pattern", [">", "*", "auth.*", "auth.>", "*.name", "plain.key"])
def test_a_good_pattern_is_returned(pattern):
    assert check_filter(pattern) == pattern


@pytest.mark.parametrize("pattern", ["", "a.>.b", "a*", "a.b>", ".a", "a..b", "a b"])
def test_a_bad_pattern_is_refused(pattern):
    with pytest.raises(ConfigurationError, match="invalid key pattern"):
        check_filter(pattern)


@pytest.mark.parametrize("name", ["", "a.b", "a b", "a*", "ä"])
def test_a_bad_bucket_is_refused(name):
    with pytest.raises(ConfigurationError, match="invalid bucket name"):
        check_bucket(name)
