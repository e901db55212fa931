"""The block `remotes` of `jetstream`."""

import pytest

from jetlake.errors import ConfigurationError
from jetlake.server.configuration.load import load_text
from jetlake.server.options import Remote, RemoteTls


def remotes_of(text, rest=""):
    return load_text(f"jetstream {{ {rest}\nremotes {{ {text} }} }}").options.jetstream.remotes


def mistakes_of(text, rest=""):
    with pytest.raises(ConfigurationError) as caught:
        remotes_of(text, rest)
    return [line.partition(": ")[2] for line in str(caught.value).splitlines()]


def test_no_remotes_is_the_default():
    assert load_text("jetstream {}").options.jetstream.remotes == ()
    assert remotes_of("") == ()


def test_every_key_is_read():
    (remote,) = remotes_of("""
        hub { urls: ["nats://hub-1.lan:4333", "hub-2.lan", "[::1]:4222"], user: ada, password: hidden, domain: east
              api_prefix: js.hub.API, allowed_accounts: ["$G"]
              tls { ca_file: ca.pem, cert_file: c.pem, key_file: k.pem, handshake_first: true } }
    """)

    assert remote == Remote(
        name="hub",
        addresses=("hub-1.lan:4333", "hub-2.lan:4222", "[::1]:4222"),
        user="ada",
        password="hidden",
        domain="east",
        api_prefix="js.hub.API",
        allowed_accounts=("$G",),
        tls=RemoteTls(authority_file="ca.pem", certificate_file="c.pem", key_file="k.pem", handshake_first=True),
    )
    assert remote.api_names == ["$JS.hub.API", "$JS.east.API", "js.hub.API"]


def test_a_url_may_hold_the_login_and_ask_for_tls():
    (remote,) = remotes_of('hub { url: "tls://ada:s%40cret@hub.lan" }')

    assert (remote.addresses, remote.user, remote.password) == (("hub.lan:4222",), "ada", "s@cret")
    assert remote.tls == RemoteTls()


@pytest.mark.parametrize(
    ("login", "field", "value"),
    [
        ("token: t", "token", "t"),
        ("nkey: user.nk", "seed_file", "user.nk"),
        ("credentials: user.creds", "credentials_file", "user.creds"),
        ("creds: user.creds", "credentials_file", "user.creds"),
    ],
)
def test_logins(login, field, value):
    (remote,) = remotes_of(f"hub {{ url: hub.lan, {login} }}")

    assert getattr(remote, field) == value


def test_a_remote_may_be_an_account_of_this_server():
    accounts = "accounts { B { jetstream: true }, C { jetstream: true } }"
    options = load_text(f"jetstream {{ remotes {{ b {{ account: B, allowed_accounts: [C] }} }} }}\n{accounts}").options

    assert options.jetstream.remotes == (Remote(name="b", account="B", allowed_accounts=("C",)),)


def test_no_password_is_shown():
    (remote,) = remotes_of("hub { url: hub.lan, user: ada, password: hidden }")

    assert "hidden" not in repr(remote)
    assert "hidden" not in repr(remote.for_engine())


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("hub: 1", 'the remote "hub" must be a map, not an integer'),
        ("hub {}", 'the remote "hub" has neither url nor account'),
        ("hub { url: a, foo: 1 }", 'unknown field "foo"'),
        ("hub { url: a, tls { foo: 1 } }", 'unknown field "foo"'),
        ('hub { url: "http://user:hidden@a" }', "url number 1 is none"),
        ('hub { url: ["a", "nats://hidden@a:x"] }', "url number 2 is none"),
        ("hub { url: a, user: u, password: hidden, token: hidden }", 'the remote "hub" has several logins'),
        ("hub { url: a, password: hidden }", 'the remote "hub" has a password and no user'),
        ("hub { url: a, tls { cert_file: c } }", 'the remote "hub" has one of cert_file and key_file'),
        ('"a.b" { url: a }', 'the remote "a.b" has a name that cannot be part of'),
        ("API { url: a }", 'the remote "API" has a name that cannot be part of'),
        ("hub { url: a, domain: 'x.y' }", 'the remote "hub" has a domain that cannot be part of'),
        ("hub { url: a, api_prefix: 'x.>' }", 'the remote "hub" has an api_prefix that is not a subject'),
        ('hub { account: "$G", url: a }', 'the remote "hub" is an account of this server: leave out'),
        (
            'hub { account: B, allowed_accounts: ["$G"] }',
            'the remote "hub" names the account "B", and there is none',
        ),
        ('hub { account: "$G" }', 'the remote "hub" lets streams read another account: name those that may in'),
        ("hub { url: a, allowed_accounts: [B] }", 'the remote "hub" names the account "B", and there is none'),
    ],
)
def test_what_cannot_work_is_refused_without_showing_secrets(text, mistake):
    lines = mistakes_of(text)

    assert lines[0].startswith(mistake)
    assert "hidden" not in "\n".join(lines)


def test_two_remotes_cannot_answer_to_one_name():
    (line,) = mistakes_of("east { url: a, domain: hub }, west { url: b, domain: hub }")
    (own,) = mistakes_of("hub { url: a }", rest="domain: hub")

    assert line == 'the remote "west" answers to $JS.hub.API, and so does the remote "east": rename one of them'
    assert own.startswith('the remote "hub" answers to $JS.hub.API, and so does this server\'s own domain')
