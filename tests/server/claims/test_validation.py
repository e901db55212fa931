"""What is wrong with claims beyond their signature."""

import pytest

from jetlake.server.claims.model import read_account, read_operator, read_user
from jetlake.server.claims.validation import account_issues, blocks, operator_issues, user_issues
from tests.compatibility.claims import Key, Operator, make_user, scoped

OPERATOR = Operator()
OTHER = OPERATOR.add_account()
NOW = 1_800_000_000


def issues_of(**claims):
    return account_issues(read_account(OPERATOR.add_account(**claims).jwt()), NOW)


def shared(kind="stream", **fields):
    return {"name": "x", "subject": "a.*", "type": kind, **fields}


def imported(kind="stream", **fields):
    return shared(kind, account=OTHER.public, **fields)


@pytest.mark.parametrize(
    ("claims", "description"),
    [
        ({"exports": [shared(subject="")]}, "subject cannot be empty"),
        ({"exports": [shared(subject="a b")]}, "cannot have spaces"),
        ({"exports": [shared(subject=".a")]}, "cannot start or end"),
        ({"exports": [shared(response_type="Stream")]}, "invalid response type for stream"),
        ({"exports": [shared("service", response_type="Many")]}, "invalid response type for service"),
        ({"exports": [shared(response_threshold=5)]}, "response threshold only valid for services"),
        ({"exports": [shared("service", response_threshold=-5)]}, "negative response threshold"),
        ({"exports": [shared(account_token_position=1)]}, "matches 'a' but must match a *"),
        ({"exports": [shared(account_token_position=5)]}, "exceeds length of subject"),
        ({"exports": [shared(subject="a.b", account_token_position=1)]}, "only be used with wildcard subjects"),
        ({"exports": [shared(), shared(subject="a.b")]}, 'stream export subject "a.*" already exports "a.b"'),
        ({"exports": [shared(service_latency={"sampling": 50, "results": "l"})]}, "only permitted for services"),
        ({"exports": [shared("service", service_latency={"sampling": 500, "results": "l"})]}, "between 1-100"),
        ({"exports": [shared("service", service_latency={"results": "l.*"})]}, "results subject can not contain"),
        ({"exports": [shared()], "limits": {"exports": 0}}, "more exports than allowed"),
        ({"exports": [shared()], "limits": {"exports": 5, "wildcards": False}}, "wildcard exports"),
        ({"imports": [imported()], "limits": {"imports": 0}}, "more imports than allowed"),
        ({"imports": [{**imported(), "account": ""}]}, "account to import from is not specified"),
        ({"imports": [imported(share=True)]}, "only valid for services"),
        ({"imports": [imported("service", allow_trace=True)]}, "AllowTrace only valid for stream import"),
        ({"imports": [imported(local_subject="b.>")]}, "need to end or not end in >"),
        ({"imports": [imported(local_subject="b.$2")]}, "that do not exist"),
        ({"imports": [imported(local_subject="b")]}, "does not contain enough"),
        ({"imports": [imported(local_subject="b.*", to="c")]}, "Local Subject replaces To"),
        ({"imports": [imported("service"), imported("service", subject="a.b")]}, "overlapping subject namespace"),
        ({"imports": [imported(token="x")]}, "contains an invalid activation token"),
        ({"default_permissions": {"pub": {"allow": ["a q"]}}}, "not allowed to contain queue"),
        ({"default_permissions": {"sub": {"allow": ["a b c"]}}}, "too many spaces"),
        ({"mappings": {"a": [{"subject": "b", "weight": 60}, {"subject": "c", "weight": 60}]}}, "exceeds 100%"),
        ({"authorization": {"allowed_accounts": ["*"]}}, "without users specified"),
        ({"trace": {"dest": "a.*"}}, "not a valid publish subject"),
        ({"trace": {"dest": "a", "sampling": 101}}, "should be in the range"),
        ({"signing_keys": [OPERATOR.key.public]}, "is not a valid account signing key"),
        ({"signing_keys": [scoped(OPERATOR.key)]}, "is not an account public key"),
        ({"limits": {"tiered_limits": {"": {}}}}, "blank"),
        ({"cluster_traffic": "x"}, "unknown cluster traffic"),
        ({"description": "x" * 9000}, "too long"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_account_that_is_not_valid_says_why(claims, description):
    issues = issues_of(**claims)

    assert blocks(issues, with_times=False)
    assert any(description in issue.description for issue in issues), issues


@pytest.mark.parametrize(
    "claims",
    [
        {},
        {"exports": [shared(), shared("service", subject="b.>", response_type="Chunked", response_threshold=5)]},
        {"exports": [shared(account_token_position=2)]},
        {"imports": [imported(), imported("service", subject="q.*", local_subject="r.$1")]},
        {"default_permissions": {"pub": {"allow": ["a"]}, "sub": {"allow": ["a q"], "deny": ["b"]}}},
        {"mappings": {"a.*": [{"subject": "b.$1", "weight": 60}, {"subject": "c.$1", "weight": 40}]}},
        {"trace": {"dest": "traces", "sampling": 5}},
        {"signing_keys": [Key("account").public, scoped(Key("account"))]},
        {"authorization": {"auth_users": [Key("user").public], "allowed_accounts": ["*"]}},
    ],
    # Keys are other ones each time, and workers must agree about the names of tests.
    ids=lambda account: "-".join(account) or "nothing",
)
def test_account_that_is_valid_has_nothing_to_say(claims):
    assert issues_of(**claims) == []


@pytest.mark.parametrize("digits", ["9" * 19, "9" * 25, "9" * 5000])
def test_reference_with_more_digits_than_a_number_has_is_a_token_like_any_other(digits):
    """Go reads no number in it; Python refuses to read more than a few thousand digits."""
    issues = issues_of(imports=[imported(local_subject=f"b.${digits}"), imported("service", to=f"${digits}.b")])

    assert any("does not contain enough" in issue.description for issue in issues)
    assert not any("that do not exist" in issue.description for issue in issues)


def test_reference_may_begin_with_zeros():
    zeros = "0" * 5000

    assert issues_of(imports=[imported(local_subject=f"b.${zeros}1")]) == []
    assert "that do not exist" in issues_of(imports=[imported(local_subject=f"b.${zeros}2")])[0].description


def test_old_field_of_an_import_is_only_a_warning():
    issues = issues_of(imports=[imported(to="prefix")])

    assert [issue.blocking for issue in issues] == [False]
    assert not blocks(issues, with_times=True)


@pytest.mark.parametrize(
    ("times", "is_blocked"), [({"exp": NOW - 1}, True), ({"nbf": NOW + 1}, True), ({"exp": NOW}, False)]
)
def test_times_block_for_now_only(times, is_blocked):
    issues = issues_of(**times)

    assert blocks(issues, with_times=True) is is_blocked
    assert not blocks(issues, with_times=False)


def test_user_that_is_not_valid_says_why():
    user = make_user(
        OTHER, src=["x"], times=[{"start": "1", "end": "24:00:00"}], times_location="x", issuer_account="x"
    )

    described = " ".join(issue.description for issue in user_issues(read_user(user.jwt), NOW))

    for part in ("invalid cidr", "start in time range", "end in time range", "time zone", "account_id"):
        assert part in described


def test_operator_that_is_not_valid_says_why():
    operator = Operator(signing_keys=[OTHER.public], system_account="x")

    described = " ".join(issue.description for issue in operator_issues(read_operator(operator.jwt()), NOW))

    assert "is not an operator public key" in described
    assert "is not an account public key" in described
