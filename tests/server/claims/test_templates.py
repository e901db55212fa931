"""Permissions of a signing key, with the user filled in."""

import pytest

from jetlake.server.claims.permissions import ClaimedSubjects, UserPermissions
from jetlake.server.claims.templates import EXPANSIONS_MAX, ClaimTemplateError, TemplateValues, fill_in

VALUES = TemplateValues(
    name="ada",
    subject="UKEY",
    account_name="shop",
    account_subject="AKEY",
    tags=("team:red", "team:blue", "site:harbour"),
    account_tags=("region:north",),
)


def allowed(*subjects, values=VALUES):
    return fill_in(UserPermissions(pub=ClaimedSubjects(allow=subjects)), values).pub


@pytest.mark.parametrize(
    ("subject", "filled"),
    [
        ("plain.>", ["plain.>"]),
        ("u.{{name()}}", ["u.ada"]),
        ("u.{{ Name() }}", ["u.ada"]),
        ("{{subject()}}.{{name()}}", ["UKEY.ada"]),
        ("{{account-name()}}.{{account-subject()}}", ["shop.AKEY"]),
        ("{{tag(site)}}.>", ["harbour.>"]),
        ("{{tag(team)}}.x", ["red.x", "blue.x"]),
        ("{{tag(team)}}.{{tag(site)}}", ["red.harbour", "blue.harbour"]),
        ("{{tag(team)}}.{{tag(team)}}", ["red.red", "blue.blue"]),
        ("{{account-tag(region)}}", ["north"]),
        ("{{TAG(SITE)}}", ["harbour"]),
    ],
)
def test_references_are_filled_in(subject, filled):
    assert set(filled) <= set(allowed(subject).allow)


def test_value_that_makes_no_subject_is_left_out():
    spaced = TemplateValues(name="ada l", subject="U", account_name="", account_subject="A")

    assert allowed("u.{{name()}}", "{{account-name()}}.x", "fixed", values=spaced).allow == ("fixed",)


def test_nothing_left_of_what_was_allowed_is_nothing_and_not_everything():
    result = allowed("{{tag(unknown)}}.>")

    assert result.allow == ()
    assert result.deny == (">",)
    assert result.as_options().deny == (">",)


def test_missing_tag_among_what_is_denied_refuses():
    template = UserPermissions(sub=ClaimedSubjects(deny=("{{tag(unknown)}}.>",)))

    with pytest.raises(ClaimTemplateError, match="is not defined"):
        fill_in(template, VALUES)


@pytest.mark.parametrize("reference", ["{{unknown()}}", "{{name}}", "{{tag}}", "{{ }}", "{{tag(}}"])
def test_unknown_reference_refuses(reference):
    with pytest.raises(ClaimTemplateError):
        allowed(f"a.{reference}")


def test_many_tags_do_not_become_too_many_subjects():
    many = TemplateValues(
        name="n", subject="U", account_name="a", account_subject="A", tags=tuple(f"t:{each}" for each in range(100))
    )

    with pytest.raises(ClaimTemplateError, match=str(EXPANSIONS_MAX)):
        allowed("{{tag(t)}}.{{tag(t)}}", values=many)
