"""The blocks `authorization` and `accounts`."""

import pytest

from jetlake.errors import ConfigurationError
from jetlake.server.configuration.load import load_text
from jetlake.server.options import (
    Account,
    Credentials,
    JetStreamAccountLimits,
    Permissions,
    ResponsePermissions,
    SubjectPermissions,
    User,
)

USER_KEY = "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4"
ACCOUNT_KEY = "AC5GRL36RQV7MJ2GT6WQSCKDKJKYTK4T2LGLWJ2SEJKRDHFOQQWGGFQL"
HASH = "$2b$04$En96ugxyIhOm3Db1IULX5ObmugSFMtiGfPg.i15/I0xZrVfAZ44Mi"
HASH_OF_59 = HASH[:-1]


def load(text):
    return load_text(text).options


def access_of(text):
    return load(text).access


def mistakes_of(text):
    with pytest.raises(ConfigurationError) as caught:
        load_text(text)
    return [line.partition(": ")[2] for line in str(caught.value).splitlines()]


def permissions_of(text):
    (user,) = access_of(f"authorization {{ users = [ {{user: a, permissions: {text}}} ] }}").users
    return user.permissions


def test_single_user_and_token():
    assert access_of("authorization { user: a, password: b }").credentials == Credentials(user="a", password="b")
    assert access_of("authorization { token: t }").credentials == Credentials(token="t")
    assert access_of(f"authorization {{ username: a, pass: {HASH} }}").credentials.password == HASH


@pytest.mark.parametrize("placeholder", ["$2b$11$…", "$2a$04$x", HASH_OF_59])
def test_hash_that_is_none_is_refused(placeholder):
    """With it the server would start, and refuse every login."""
    listed = mistakes_of(f'authorization {{ users: [ {{user: ada, password: "{placeholder}"}} ] }}')
    alone = mistakes_of(f'authorization {{ user: ada, password: "{placeholder}" }}')
    token = mistakes_of(f'authorization {{ token: "{placeholder}" }}')

    assert listed[0].startswith('The password of user "ada" is not a bcrypt hash: it begins as one')
    assert alone[0].startswith("The password is not a bcrypt hash")
    assert token[0].startswith("The token is not a bcrypt hash")


def test_users_of_authorization_belong_to_the_global_account():
    access = access_of("authorization { users = [ {user: a, pass: b}, {username: c} ] }")

    assert access.users == (User(name="a", password="b"), User(name="c"))
    assert access.required


def test_users_of_accounts_and_of_authorization_come_together():
    access = access_of(f"""
        accounts {{
          A {{ users: [ {{user: a, password: a}}, {{nkey: {USER_KEY}}} ] }}
          B {{ users: [ {{user: b, password: b}} ] }}
        }}
        authorization {{ users: [ {{user: g, password: g}} ] }}
        no_auth_user: b
    """)

    assert {(user.name, user.account, user.nkey) for user in access.users} == {
        ("g", "$G", False),
        ("a", "A", False),
        (USER_KEY, "A", True),
        ("b", "B", False),
    }
    assert access.no_auth_user == "b"
    assert access.signs_nonce
    assert access.account_names() == ["$G", "A", "B", "$SYS"]


def test_accounts_may_be_names_only():
    assert access_of("accounts: [A, B]").accounts == (Account(name="A"), Account(name="B"))


def test_limits_of_an_account():
    access = access_of("""
        accounts { A {
          limits { max_connections: 5, max_subs: 6, max_payload: 1KB, max_leafnodes: 2 }
          jetstream { max_mem: 1MB, max_file: -1, max_streams: 3, consumers: 4, max_stream_bytes: true
                      memory_max_stream_bytes: 10, disk_max_stream_bytes: 20, max_ack_pending: 30 }
        }
        B { jetstream: enabled, limits { max_conn: -1 } }
        C { jetstream: false } }
    """)

    first, second, third = access.accounts
    assert (first.max_connections, first.max_subscriptions, first.max_payload_bytes) == (5, 6, 1024)
    assert first.jetstream == JetStreamAccountLimits(
        max_memory_bytes=1 << 20,
        max_streams=3,
        max_consumers=4,
        stream_bytes_required=True,
        memory_stream_bytes_max=10,
        storage_stream_bytes_max=20,
        max_acknowledgements_pending=30,
    )
    assert second == Account(name="B", jetstream=JetStreamAccountLimits())
    assert third.jetstream is None


@pytest.mark.parametrize(
    ("text", "permissions"),
    [
        ("{ publish: foo }", Permissions(publish=SubjectPermissions(allow=("foo",)))),
        ("{ pub: [a, 'b.>'] }", Permissions(publish=SubjectPermissions(allow=("a", "b.>")))),
        ("{ subscribe: { deny: x } }", Permissions(subscribe=SubjectPermissions(deny=("x",)))),
        (
            "{ sub: { allow: ['foo', 'bar q.*'], deny: [] } }",
            Permissions(subscribe=SubjectPermissions(allow=("foo", "bar q.*"))),
        ),
        (
            "{ allow_responses: true }",
            Permissions(publish=SubjectPermissions(allow=()), responses=ResponsePermissions()),
        ),
        (
            "{ publish: { deny: d }, allow_responses: { max: 5, expires: '1m' } }",
            Permissions(
                publish=SubjectPermissions(allow=(), deny=("d",)),
                responses=ResponsePermissions(count_max=5, expires_ms=60_000),
            ),
        ),
        (
            "{ publish: p, allow_responses: { max_messages: -7, ttl: '-1s' } }",
            Permissions(
                publish=SubjectPermissions(allow=("p",)), responses=ResponsePermissions(count_max=-1, expires_ms=-1)
            ),
        ),
        ("{ allow_responses: false }", Permissions()),
        ("{ publish: {} }", Permissions()),
        ("{}", Permissions()),
    ],
)
def test_permissions(text, permissions):
    assert permissions_of(text) == permissions


def test_default_permissions_are_for_users_without_their_own():
    access = access_of("""
        authorization {
          users = [ {user: a}, {user: b, permissions: {subscribe: x}} ]
          default_permissions = { publish: d }
        }
    """)

    a, b = access.users
    assert a.permissions == Permissions(publish=SubjectPermissions(allow=("d",)))
    assert b.permissions == Permissions(subscribe=SubjectPermissions(allow=("x",)))


def test_permissions_may_come_from_a_variable():
    (user,) = access_of("""
        authorization { BASIC: { publish: p }
          users: [ {user: a, permissions: $BASIC} ] }
    """).users

    assert user.permissions == Permissions(publish=SubjectPermissions(allow=("p",)))


def test_connection_types_in_any_case():
    (user,) = access_of("authorization { users: [{user: a, allowed_connection_types: [standard, WEBSOCKET]}] }").users

    assert user.connection_types == {"STANDARD", "WEBSOCKET"}
    assert user.may_connect_as("STANDARD")


@pytest.mark.parametrize(
    ("text", "only_system"),
    [
        ("accounts { $SYS { users: [{user: s}] } }", True),
        ("accounts { S { users: [{user: s}] } }\nsystem_account: S", True),
        ("accounts { $SYS { users: [{user: s}] }, A {} }", False),
        ("accounts { $SYS { users: [{user: s}] } }\nauthorization { timeout: 3 }", False),
        ("accounts { $SYS { users: [{user: s}] } }\nno_auth_user: s", False),
        ("accounts { A { users: [{user: s}] } }", False),
    ],
)
def test_everybody_comes_in_where_only_the_system_account_has_users(text, only_system):
    assert access_of(text).only_system_users is only_system


def test_system_account_may_be_another_or_none():
    assert access_of("accounts { S {} }\nsystem_account: S").system_account == "S"
    assert access_of("no_system_account: true").system_account == ""


@pytest.mark.parametrize(("text", "seconds"), [("1", 1), ("0.5", 0.5), ("'3s'", 3), ("'100ms'", 0.1)])
def test_timeout_is_seconds_or_a_duration(text, seconds):
    assert load(f"authorization {{ timeout: {text} }}").limits.auth_timeout_ms == seconds * 1000


def test_high_timeout_is_warned_about():
    (warning,) = load_text("authorization { timeout: 2m }").warnings

    assert "2e+06 seconds is high" in warning


def test_clients_of_tls_have_a_second_more_than_the_handshake():
    options = load("tls { cert_file: c, key_file: k, timeout: 4 }")

    assert options.limits.auth_timeout_ms == 5000


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("authorization { user: a, token: t }", "Cannot have a user/pass and token"),
        ("authorization { user: a, users: [{user: b}] }", "Can not have a single user/pass and a users array"),
        ("authorization { token: t, users: [{user: b}] }", "Can not have a token and a users array"),
        ("authorization { token: t }\naccounts { A { users: [{user: b}] } }", "Can not have a token"),
        ("authorization { users: [{user: a}, {user: a}] }", 'Duplicate user "a" detected'),
        ("accounts { A { users: [{user: a}] }, B { users: [{user: a}] } }", 'Duplicate user "a" detected'),
        (f"authorization {{ users: [{{nkey: {USER_KEY}}}, {{nkey: {USER_KEY}}}] }}", "Duplicate nkey"),
        ("authorization { users: [] }", '"users" is empty'),
        ("authorization { users: a }", '"users" must be a list of maps, not text'),
        ("authorization { users: [a] }", '"users" must contain maps in braces, not text'),
        ("authorization { users: [{password: p}] }", "User entry requires a user"),
        ("authorization { users: [{nkey: UABC}] }", "Not a valid public nkey for a user"),
        (f"authorization {{ users: [{{nkey: {ACCOUNT_KEY}}}] }}", "Not a valid public nkey for a user"),
        (f"authorization {{ users: [{{nkey: {USER_KEY}, user: a}}] }}", "Nkey users do not take usernames"),
        ("authorization { users: [{user: a, foo: b}] }", 'unknown field "foo"'),
        ("authorization { users: [{user: a, connection_types: x}] }", 'unknown connection type "X"'),
        ("authorization { users: [{user: a, proxy_required: true}] }", '"proxy_required" is not supported yet'),
        ("authorization { foo: b }", 'unknown field "foo"'),
        ("authorization { timeout: true }", '"timeout" must be a number of seconds or a duration, not a boolean'),
        ("authorization { auth_callout { } }", "Authorization callouts require an issuer to be specified"),
        (f"authorization {{ auth_callout {{ issuer: {ACCOUNT_KEY} }} }}", "Authorization callouts require authorized"),
        (f"authorization {{ auth_callout {{ issuer: {USER_KEY}, users: [a] }} }}", "Expected callout user to be"),
        (f"authorization {{ auth_callout {{ issuer: {ACCOUNT_KEY}, users: [a], key: X }} }}", "Expected callout xkey"),
        ("no_auth_user: x", 'no_auth_user: "x" not present'),
        ("accounts { $G { } }", '"$G" is a Reserved Account'),
        ("accounts: ['$G']", '"$G" is a Reserved Account'),
        ("accounts: [A, A]", "Duplicate Account Entry: A"),
        ("accounts { A: 1 }", 'Expected map entries for accounts: "A" is an integer'),
        ("accounts: 1", '"accounts" must be a map of accounts or a list of names'),
        ("accounts { A { nkey: x } }", "Not a valid public nkey for an account"),
        ("accounts { 'a b' { } }", '"a b" cannot be the name of an account'),
        ("accounts { A { jetstream: maybe } }", '"jetstream" must be a map, true, false'),
        ("accounts { A { limits { x: 1 } } }", 'unknown field "x"'),
        ("system_account: S", 'the system account "S" is not defined'),
    ],
)
def test_what_cannot_work_is_refused(text, mistake):
    (line,) = mistakes_of(text)

    assert line.startswith(mistake)


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("{ publish: 'foo bar' }", 'subject "foo bar" is not a valid subject'),
        ("{ publish: 'foo..bar' }", 'subject "foo..bar" is not a valid subject'),
        ("{ publish: 'foo.>.bar' }", 'subject "foo.>.bar" is not a valid subject'),
        ("{ subscribe: 'a b c' }", 'subject "a b c" is not a valid subject'),
        ("{ subscribe: 'a. b' }", 'subject "a." is not a valid subject'),
        ("{ subscribe: 'a b..c' }", 'queue "b..c" is not a valid queue'),
        ("{ publish: [1] }", '"publish" must contain texts only, not an integer'),
        ("{ publish: { allow: 1 } }", '"allow" must be text or a list of texts, not an integer'),
        ("{ publish: [] }", '"publish" is empty: remove it to allow everything, or deny ">"'),
        ("{ subscribe: { allow: [] } }", '"allow" is empty'),
        ("{ publish: { permit: a } }", 'Unknown field name "permit" parsing subject permissions'),
        ("{ foo: a }", 'unknown field "foo"'),
        ("{ allow_responses: 5 }", '"allow_responses" must be true, false or a map, not an integer'),
        ("{ allow_responses: { expires: 5 } }", '"expires" must be a duration in quotes'),
        ("[]", '"permissions" must be a map, not a list'),
    ],
)
def test_permission_that_cannot_work_is_refused(text, mistake):
    (line,) = mistakes_of(f"authorization {{ users = [ {{user: a, permissions: {text}}} ] }}")

    assert line.startswith(mistake)


@pytest.mark.parametrize(
    "text",
    [
        "authorization { user: [hidden-1], password: [hidden-2] }",
        "authorization { user: a, password: hidden-1 x: 1 }",
        "authorization { token: { hidden-1: 1 } }",
        "authorization { users: [{user: a, password: hidden-1}, {user: a, password: hidden-2}] }",
        "authorization { users: hidden-1 }",
        "authorization { users: [hidden-1] }",
        "authorization { password: $hidden-1 }",
    ],
)
def test_no_mistake_repeats_a_secret(text):
    with pytest.raises(ConfigurationError) as caught:
        load_text(text)

    assert "hidden" not in str(caught.value)
