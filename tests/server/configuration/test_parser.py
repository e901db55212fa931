"""Grammar: what files of nats-server look like, odd ones included, and what is said about broken ones."""

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jetlake.errors import ConfigurationError
from jetlake.server.configuration.document import ConfigurationNode, DateLiteral
from jetlake.server.configuration.parser import INCLUDES_MAX, NESTING_MAX, VALUES_MAX, parse_file, parse_text


def plain(node: ConfigurationNode):
    """Return the values without their places."""
    if isinstance(node.data, dict):
        return {key: plain(value) for key, value in node.data.items()}
    if isinstance(node.data, list):
        return [plain(value) for value in node.data]
    return node.data


def parse(text: str):
    return plain(parse_text(text))


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("port: 4222", {"port": 4222}),
        ("port = 4222", {"port": 4222}),
        ("port 4222", {"port": 4222}),
        ("port\n\n4222", {"port": 4222}),
        ("port\n= 4222", {"port": 4222}),
        ("a: 1; b: 2, c: 3\nd: 4", {"a": 1, "b": 2, "c": 3, "d": 4}),
        ('{ "a": 1, "b": [2, 3] }', {"a": 1, "b": [2, 3]}),
        ("{\n a: 1\n b: 2\n}\n", {"a": 1, "b": 2}),
        ("{{ a: 1 }}", {"a": 1}),
        ("{ a: 1 }\nb: 2", {"a": 1, "b": 2}),
        ("a: 1\n}\n# the end", {"a": 1}),
        ("tls {\n}\n", {"tls": {}}),
        ("tls\n{\n a: 1\n}", {"tls": {"a": 1}}),
        ("tls { a:\n 1 }", {"tls": {"a": 1}}),
        ("users [\n {user: a}\n {user: b,}\n]", {"users": [{"user": "a"}, {"user": "b"}]}),
        ("a: [1, 2,\n 3,]", {"a": [1, 2, 3]}),
        ("a: [\n1\n2\n]", {"a": [1, 2]}),
        ("a: 1\na: 2", {"a": 2}),
        ("\"a b\": 1, 'c d': 2", {"a b": 1, "c d": 2}),
        ("a { b: 1; c: 2 }", {"a": {"b": 1, "c": 2}}),
        ("", {}),
        ("# nothing\n// at all", {}),
        # A key ends only at a blank or a separator.
        ("tls{ a", {"tls{": "a"}),
    ],
)
def test_structure_is_that_of_nats_server(text, values):
    assert parse(text) == values


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("0", 0),
        ("-17", -17),
        ("1k", 1000),
        ("1K", 1000),
        ("1kb", 1024),
        ("1KiB", 1024),
        ("2Mi", 2 << 20),
        ("1g", 10**9),
        ("1GB", 1 << 30),
        ("3T", 3 * 10**12),
        ("1EB", 1 << 60),
        ("-1k", -1000),
        ("1.5", 1.5),
        ("-2.25", -2.25),
        ("30s", "30s"),
        ("10ms", "10ms"),
        ("2m", 2_000_000),
        ("1.5h", "1.5h"),
        ("127.0.0.1:4222", "127.0.0.1:4222"),
        ("127.0.0.1:-1", "127.0.0.1:-1"),
        ("10.0.0.0", "10.0.0.0"),
        ("10.0.0.0/8", "10.0.0.0/8"),
        ("9000x", "9000x"),
        ("2026-11-15T18:15:55Z", DateLiteral("2026-11-15T18:15:55Z")),
        ("true", True),
        ("YES", True),
        ("on", True),
        ("False", False),
        ("no", False),
        ("OFF", False),
        ("truely", "truely"),
        ("foo.>", "foo.>"),
        ("nats://a:b@c:4222", "nats://a:b@c:4222"),
        ("/tmp/a//b#c", "/tmp/a//b#c"),
        ("pässwörd", "pässwörd"),
        (r"a\tb", "a\tb"),
        (r"\x41", "A"),
        (r"tru\x65", "true"),
        ('""', ""),
        ("''", ""),
        (r'"a\t\n\r\"\\ \x41 \xe2\x82\xac"', 'a\t\n\r"\\ A €'),
        (r"'a\t#;,[]{}$'", r"a\t#;,[]{}$"),
        ('"true"', "true"),
        ('"4222"', "4222"),
        ("'two\nlines'", "two\nlines"),
        ("(\n a )\n(b\n)", "\n a )\n(b\n"),
        ("$2a$11$abc/def.", "$2a$11$abc/def."),
        ("$2b$11$abc/def.", "$2b$11$abc/def."),
    ],
)
def test_value_is_read_as_nats_server_reads_it(written, value):
    assert parse(f"key: {written}\nnext: 1") == {"key": value, "next": 1}


def test_comments_stand_at_the_borders_of_words_only():
    text = "a: 1 # one\nb: x#y // two\nc { # three\n d: 2 // four\n # five\n}\ne: [ # six\n 1 // seven\n]\n# eight"

    assert parse(text) == {"a": 1, "b": "x#y", "c": {"d": 2}, "e": [1]}


def test_windows_line_ends_are_line_ends():
    assert parse("a: 1\r\nb {\r\n c: x\r\n}\r\n") == {"a": 1, "b": {"c": "x"}}


def test_variable_is_the_nearest_key_before_it():
    text = "v: 1\na { v: 2\n b { w: $v } }\nc { w: $v }\nlist: [$v, $v]"

    assert parse(text) == {"v": 1, "a": {"v": 2, "b": {"w": 2}}, "c": {"w": 1}, "list": [1, 1]}


def test_variable_may_be_a_map_and_marks_what_it_refers_to():
    document = parse_text("BASIC { publish: foo }\nuser { permissions: $BASIC }")

    assert plain(document)["user"] == {"permissions": {"publish": "foo"}}
    assert document.data["BASIC"].used
    assert not document.data["user"].used


def test_variable_of_the_environment_is_read_as_a_value(monkeypatch):
    monkeypatch.setenv("JETLAKE_NUMBER", "4222")
    monkeypatch.setenv("JETLAKE_LIST", "[a, 1k]")
    monkeypatch.setenv("JETLAKE_OTHER", "$JETLAKE_NUMBER")

    assert parse("a: $JETLAKE_NUMBER\nb: $JETLAKE_LIST\nc: $JETLAKE_OTHER") == {"a": 4222, "b": ["a", 1000], "c": 4222}


def test_variable_that_refers_to_itself_is_an_error(monkeypatch):
    monkeypatch.setenv("JETLAKE_ONE", "$JETLAKE_TWO")
    monkeypatch.setenv("JETLAKE_TWO", "$JETLAKE_ONE")

    with pytest.raises(ConfigurationError, match="refers to itself"):
        parse("a: $JETLAKE_ONE")


def test_quotes_keep_a_dollar_sign():
    assert parse("a: \"$x\", b: '$y'") == {"a": "$x", "b": "$y"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("port:\n4222", '<text>:1:6: the value of "port" must be on the same line'),
        ("a: 1\nb: $NOPE_", "<text>:2:4: the variable $NOPE_ is not defined"),
        ("a { user: a password: b }", "<text>:1:13: a comma, a newline or a } was expected"),
        ("a: one two", "<text>:1:8: a newline, a comma or a semicolon was expected"),
        ("a: it's", "<text>:1:7: a newline"),
        ("a: [b c]", "<text>:1:7: a comma, a newline or a ] was expected"),
        ("a: [1,,2]", "<text>:1:7: a value was expected before the comma"),
        ("a: [1, 2", "<text>:1:4: the list that begins here has no closing ]"),
        ("x: 1\na {\n b: 1\n", "<text>:2:3: the map that begins here has no closing }"),
        ("{ a: 1", "<text>:1:7: the file ends inside a map"),
        ("a: 1\n} b: 2", "<text>:2:1: this } closes nothing"),
        ("a { b: }", '<text>:1:5: "b" has no value'),
        ("a { b: , c: 1 }", '<text>:1:5: "b" has no value'),
        ("a", '<text>:1:1: "a" has no value'),
        ("a { ] }", "<text>:1:5: a key or a } was expected"),
        (": 1", "<text>:1:1: a key was expected before ':'"),
        ("a: .5", "<text>:1:4: a number begins with a digit"),
        ("a: -x", "<text>:1:4: a number was expected after the minus sign"),
        ("a: -1s", "<text>:1:4: a number was expected after the minus sign"),
        ("a: 1kbb", "<text>:1:4: 1kbb is not a size"),
        ("a: 9223372036854775808", "<text>:1:4: the number is out of range"),
        ("a: 9223372036854775807k", "<text>:1:4: the number is out of range"),
        ("a: " + "9" * 5000, "<text>:1:4: the number is out of range"),
        ("a: 2026-02-31T00:00:00Z", "<text>:1:4: 2026-02-31T00:00:00Z is not a calendar date"),
        ('a: "x', '<text>:1:4: the text that begins here has no closing "'),
        ("a: 'x", "<text>:1:4: the text that begins here has no closing '"),
        ("a: (\nx )", "<text>:1:4: the text block that begins here"),
        ('"a: 1', '<text>:1:1: the key that begins here has no closing "'),
        (r'a: "\q"', "<text>:1:6: unknown escape"),
        (r'a: "\x4"', "<text>:1:6: unknown escape"),
        (r'a: "\xff"', "<text>:1:4: the text is not UTF-8"),
        ("a: \0", "<text>:1:4: a zero byte"),
        ("a: \ud800", "<text>:1:4: half a character"),
        ("include 5", "<text>:1:9: include needs the name of a file"),
        ("include\n", "<text>:1:8: include needs the name of a file"),
    ],
)
def test_mistake_is_named_with_line_and_column(text, message):
    with pytest.raises(ConfigurationError) as caught:
        parse_text(text)

    assert str(caught.value).startswith(message)


@pytest.mark.parametrize("key", ["pass", "password", "token", "PASSWORD"])
def test_password_that_looks_like_a_variable_is_not_repeated(key):
    with pytest.raises(ConfigurationError) as caught:
        parse_text(f"authorization {{ {key}: $ecret }}")

    assert "ecret" not in str(caught.value)
    assert "put a text that begins with $ in quotes" in str(caught.value)


def test_depth_has_a_limit():
    assert parse("a: " + "[" * NESTING_MAX + "]" * NESTING_MAX)["a"] is not None

    with pytest.raises(ConfigurationError, match="inside each other"):
        parse("a: " + "[" * (NESTING_MAX + 1))


def test_depth_has_a_limit_also_for_variables():
    """Whoever looks through all values would else run out of stack."""
    levels = [f"x{number}: {{a: $x{number - 1}}}" for number in range(1, 1500)]

    assert parse("x0: 1\n" + "\n".join(levels[:NESTING_MAX]))["x1"] == {"a": 1}
    for last in ("", "\nb: [{c: $x63}]"):
        with pytest.raises(ConfigurationError, match="inside each other"):
            parse("x0: 1\n" + "\n".join(levels if not last else levels[: NESTING_MAX - 1]) + last)


def test_variables_do_not_make_more_values_than_memory_holds():
    doubled = "".join(f"x{number}: [$x{number - 1}, $x{number - 1}]\n" for number in range(1, 40))

    with pytest.raises(ConfigurationError, match=f"^<text>:2[12]:6: more than {VALUES_MAX} values"):
        parse(f"x0: [1, 2]\n{doubled}")
    with pytest.raises(ConfigurationError, match=f"more than {VALUES_MAX} values"):
        parse("x0: [1, 2]\n" + "".join(doubled.splitlines(keepends=True)[:19]) + "y: $x19\nz: $x19\n")


def test_environment_variables_that_refer_to_each_other_have_a_limit(monkeypatch):
    for number in range(1, 400):
        monkeypatch.setenv(f"JETLAKE_CHAIN_{number}", f"$JETLAKE_CHAIN_{number - 1}")
    monkeypatch.setenv("JETLAKE_CHAIN_0", "5")

    assert parse("a: $JETLAKE_CHAIN_20") == {"a": 5}
    with pytest.raises(ConfigurationError, match="refer to each other"):
        parse("a: $JETLAKE_CHAIN_399")


def test_include_is_relative_to_the_file_that_includes(tmp_path):
    (tmp_path / "users").mkdir()
    (tmp_path / "server.conf").write_text("include users/all.conf\nport: $PORT\nb { include 'users/one.conf' }")
    (tmp_path / "users" / "all.conf").write_text('PORT: 4222\ninclude "./one.conf"')
    (tmp_path / "users" / "one.conf").write_text("user: ada")

    document = parse_file(str(tmp_path / "server.conf"))

    assert plain(document) == {"PORT": 4222, "user": "ada", "port": 4222, "b": {"user": "ada"}}
    assert str(document.data["user"].position) == f"{tmp_path}/users/one.conf:1:1"


def test_key_called_include_is_a_key_with_a_separator():
    assert parse("include: x") == {"include": "x"}


def test_included_file_that_is_missing_is_named(tmp_path):
    (tmp_path / "server.conf").write_text("a: 1\ninclude missing.conf")

    with pytest.raises(ConfigurationError) as caught:
        parse_file(str(tmp_path / "server.conf"))

    assert str(caught.value) == (
        f"{tmp_path}/server.conf:2:9: in the included file: open {tmp_path}/missing.conf: no such file or directory"
    )


def test_files_that_include_each_other_are_refused(tmp_path):
    (tmp_path / "a.conf").write_text("include b.conf")
    (tmp_path / "b.conf").write_text("include a.conf")

    with pytest.raises(ConfigurationError, match="is included by itself"):
        parse_file(str(tmp_path / "a.conf"))


@pytest.mark.parametrize("name", ["'/secret.conf'", "'folder'", "'../secret.conf'"])
def test_include_reads_only_what_it_names(tmp_path, name):
    """A path from the root is taken as one from the file's folder, as on nats-server; a folder is none."""
    (tmp_path / "secret.conf").write_text("password: hidden")
    inner = tmp_path / "inner"
    (inner / "folder").mkdir(parents=True)
    (inner / "server.conf").write_text(f"include {name}")

    if ".." in name:
        # Whoever writes the file may read what the server may.
        assert parse_file(str(inner / "server.conf")).data.keys() == {"password"}
        return
    with pytest.raises(ConfigurationError, match="in the included file") as caught:
        parse_file(str(inner / "server.conf"))
    assert "hidden" not in str(caught.value)


def test_a_file_that_includes_itself_by_a_link_is_refused(tmp_path):
    (tmp_path / "a.conf").write_text("include link.conf")
    (tmp_path / "link.conf").symlink_to(tmp_path / "a.conf")

    with pytest.raises(ConfigurationError, match="includ"):
        parse_file(str(tmp_path / "a.conf"))


def test_chain_of_includes_has_a_limit(tmp_path):
    for number in range(INCLUDES_MAX + 2):
        (tmp_path / f"{number}.conf").write_text(f"include {'./'}{number + 1}.conf")

    with pytest.raises(ConfigurationError, match=f"more than {INCLUDES_MAX} files"):
        parse_file(str(tmp_path / "0.conf"))


def test_file_that_is_missing_or_not_utf8_is_refused(tmp_path):
    (tmp_path / "latin.conf").write_bytes(b"a: 1\nb: p\xe4ss")

    with pytest.raises(ConfigurationError, match=r"^open .*: no such file or directory$"):
        parse_file(str(tmp_path / "none.conf"))
    with pytest.raises(ConfigurationError, match=r"latin.conf:2:5: not UTF-8"):
        parse_file(str(tmp_path / "latin.conf"))


WORDS = "a port include 1 -1 1k 1.5 true $a $ $2a$11$x 127.0.0.1:4222 99999999999999999999 2026-01-01T00:00:00Z é \\x41"
MARKS = [*"{}[]:=,;()#/-.\"'\\ \t\n\0\ud800\u2028", "//", "\r\n", "\n)\n"]
PIECES = st.sampled_from([*WORDS.split(), *MARKS])


@settings(max_examples=400, deadline=None)
@given(st.lists(PIECES, max_size=40).map("".join) | st.text(max_size=60))
def test_any_text_is_a_map_or_a_configuration_error(text):
    try:
        document = parse_text(text)
    except ConfigurationError:
        return
    assert isinstance(document.data, dict)


@settings(max_examples=100, deadline=None)
@given(st.lists(PIECES.filter(lambda piece: "\0" not in piece and "\ud800" not in piece), max_size=20).map("".join))
def test_any_environment_is_a_value_or_a_configuration_error(text):
    os.environ["JETLAKE_FUZZ"] = text
    try:
        document = parse_text("a: $JETLAKE_FUZZ")
    except ConfigurationError:
        return
    finally:
        del os.environ["JETLAKE_FUZZ"]
    assert list(document.data) == ["a"]
