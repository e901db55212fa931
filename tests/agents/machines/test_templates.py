"""Templates: lookups, functions, pipelines; what cannot be understood is named."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jetlake.agents.machines.templates import TemplateError, lookup, parse_template

SCOPE = {
    "facts": {"os": {"family": "RedHat"}, "disks": [{"name": "sda"}, {"name": "sdb"}], "load": 0.5, "cores": 8},
    "data": {"CFG_auth.username": "bob", "CFG": {"port": 4222}, "list": ["a", "b"], "on": True, "none": None},
}


def render(text):
    return parse_template(text).render(SCOPE)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("", ""),
        ('{{ lookup "facts.os.family" "?" }}', "RedHat"),
        ('a {{lookup "facts.os.nothing" "default"}} b', "a default b"),
        ('{{ lookup "data.CFG_auth\\.username" "" }}', "bob"),
        ('{{ lookup "data.CFG_auth\\\\.username" "" }}', "bob"),
        ("{{ lookup `data.CFG_auth\\.username` `` }}", "bob"),
        ('{{ lookup "data.CFG.port" 1 }}', "4222"),
        ('{{ lookup "facts.load" 1 }}/{{ lookup "facts.cores" 1 }}', "0.5/8"),
        ('{{ lookup "facts.disks.1.name" "" }}', "sdb"),
        ('{{ lookup "facts.disks.#" 0 }}', "2"),
        ('{{ lookup "facts.disks.#.name" "" }}', '["sda", "sdb"]'),
        ('{{ lookup "facts.o*.family" "" }}', "RedHat"),
        ('{{ lookup "data.CFG" "" }}', '{"port": 4222}'),
        ('{{ lookup "data.on" false }}', "true"),
        ('{{ lookup "data.none" "x" }}', "<no value>"),
        ('{{ lookup "facts.os.family" "" | ToLower }}', "redhat"),
        ('{{ ToUpper (lookup "facts.os.family" "") }}', "REDHAT"),
        ('{{ Title "red hat" }}{{ Capitalize "red hat" }}', "Red HatRed hat"),
        ('{{ StringsJoin (lookup "data.list" "") "," }}', "a,b"),
        ('{{ lookup "data.list" "" | StringJoin "-" }}', "a-b"),
        ('{{ Base64Encode "bob" }}{{ Base64Decode "Ym9i" }}', "Ym9ibob"),
        ('a  {{- " b" -}}  c', "a bc"),
        ("{{/* a comment */}}x", "x"),
        ('{{ "}" }}', "}"),
    ],
)
def test_templates_are_filled_in(text, expected):
    assert render(text) == expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{{ lookup", "not closed"),
        ("{{ }}", "is missing"),
        ("{{ if eq 1 1 }}x{{ end }}", "if is not supported"),
        ('{{ lokup "a" "b" }}', "there is no function 'lokup'; did you mean lookup"),
        ('{{ lookup "a" }}', "needs a path and a default"),
        ('{{ ToLower (lookup "data.CFG" "") }}', "a text is needed"),
        ("{{ ToLower }}", "cannot work with its arguments"),
        ('{{ Base64Decode "%%" }}', "cannot work"),
        ('{{ "a" "b" }}', "one too many"),
        ('{{ ToLower ("a" }}', "not closed"),
        ('{{ "a" | "b" }}', "a function belongs behind"),
        ("{{ .Field }}", "is not understood"),
        ("{{ " + "(" * 60 + '"a"' + ")" * 60 + " }}", "nested too deeply"),
    ],
)
def test_what_is_not_understood_is_named(text, reason):
    with pytest.raises(TemplateError, match=reason):
        render(text)


def test_overrides_are_looked_up_by_their_own_function():
    template = parse_template('{{ o "warning" 5 }}')

    assert template.render({}) == "5"
    assert template.render({}, lambda path: {"warning": 7}[path]) == "7"


def test_a_path_that_leads_nowhere_is_the_default():
    assert lookup([1, 2], "5", "d") == "d"
    assert lookup("text", "a", "d") == "d"
    assert lookup({}, "", "d") == {}


@given(text=st.text(alphabet='{}-|()"`\\. abclookupToLower123\n', max_size=60) | st.text(max_size=60))
@settings(max_examples=300, deadline=None)
def test_any_text_is_a_template_or_refused(text):
    try:
        parse_template("{{" + text + "}}").render(SCOPE)
        parse_template(text).render(SCOPE)
    except TemplateError:
        pass
