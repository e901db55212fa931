"""Operator mode: what users may do, by their own claims, those of their account, and templates of signing keys."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

import pytest

from tests.compatibility.claims import ANY_USER, Key, Operator, User, make_user, scoped
from tests.compatibility.server_process import ServerProcess
from tests.compatibility.wire import RawClient

VIOLATION = "Permissions Violation for"
OPEN_TEMPLATE = {"subs": -1, "data": -1, "payload": -1}


class World:
    """One server with accounts that give their users different rights."""

    def __init__(self) -> None:
        self.operator = Operator()
        self.plain = self.operator.add_account(name="plain")
        self.restrained = self.operator.add_account(
            name="restrained", default_permissions={"pub": {"allow": ["given.>"]}, "sub": {"deny": ["secret"]}}
        )
        self.small = self.operator.add_account(name="small", limits={"subs": 2, "payload": 8, "conn": 2})
        self.keys = {name: Key("account") for name in ("named", "tagged", "denied", "bearer", "limited", "broken")}
        self.templated = self.operator.add_account(
            name="templated",
            tags=["place:harbour", "place:pier"],
            signing_keys=[
                scoped(
                    self.keys["named"],
                    **OPEN_TEMPLATE,
                    pub={"allow": ["user.{{name()}}.>", "key.{{subject()}}", "{{account-name()}}", "fixed"]},
                    sub={"allow": ["of.{{account-subject()}}.>", "{{ NAME() }}.inbox"]},
                ),
                scoped(
                    self.keys["tagged"],
                    **OPEN_TEMPLATE,
                    pub={"allow": ["{{tag(team)}}.{{account-tag(place)}}"]},
                    sub={"allow": ["{{tag(team)}}.>"]},
                ),
                scoped(self.keys["denied"], **OPEN_TEMPLATE, pub={"deny": ["{{tag(team)}}.>"]}),
                scoped(self.keys["bearer"], **OPEN_TEMPLATE, bearer_token=True),
                scoped(self.keys["limited"], subs=1, data=-1, payload=4, src=["10.0.0.0/8"]),
                scoped(self.keys["broken"], **OPEN_TEMPLATE, pub={"allow": ["{{unknown()}}"]}),
            ],
        )

    def scoped_user(self, key: str, **given: object) -> User:
        return make_user(self.templated, issuer=self.keys[key], claimed={}, **given)


@pytest.fixture(scope="module")
def world() -> World:
    return World()


@pytest.fixture(scope="module")
def server(server_kind, tmp_path_factory, world):
    from tests.compatibility.server_process import start_server_process

    config = world.operator.configuration()
    process = start_server_process(server_kind, tmp_path_factory.mktemp(server_kind), config=config)
    yield process
    process.stop()


def come_in(client: RawClient, user: User) -> None:
    client.connect(**user.presented(client.info["nonce"]))


def refuse(server: ServerProcess, user: User, text: str = "Authorization Violation") -> None:
    with server.client() as client:
        client.send_connect(verbose=False, **user.presented(client.info["nonce"]))
        client.expect_error_and_closed(text)


def check_rights(
    server: ServerProcess, user: User, *, publishes: list[str], subscribes: list[str], refused: list[str]
) -> None:
    """`refused` are operations: `PUB a` or `SUB b`."""
    with server.client() as client:
        come_in(client, user)
        for subject in publishes:
            client.send(f"PUB {subject} 0\r\n\r\n".encode())
        for number, subject in enumerate(subscribes):
            client.send(f"SUB {subject} {number}\r\n".encode())
        client.expect_pong()
        for operation in refused:
            verb, subject = operation.split(" ", 1)
            if verb == "PUB":
                client.send(f"PUB {subject} 0\r\n\r\n".encode())
                client.expect_error(f'{VIOLATION} Publish to "{subject}"')
            else:
                client.send(f"SUB {subject} 99\r\n".encode())
                assert client.read_line().startswith(f"-ERR '{VIOLATION} Subscription to".encode())


def test_user_without_permissions_may_everything(server: ServerProcess, world: World) -> None:
    check_rights(server, make_user(world.plain), publishes=["a", "b.c"], subscribes=[">"], refused=[])


def test_permissions_of_a_user_hold(server: ServerProcess, world: World) -> None:
    user = make_user(
        world.plain,
        pub={"allow": ["orders.>"], "deny": ["orders.secret"]},
        sub={"allow": ["news.*", "jobs workers"], "deny": ["news.bad"]},
    )

    check_rights(
        server,
        user,
        publishes=["orders.new"],
        subscribes=["news.good", "jobs workers"],
        refused=["PUB orders.secret", "PUB other", "SUB other", "SUB news.bad", "SUB jobs", "SUB jobs idlers"],
    )


def test_right_to_answer_holds_for_the_number_of_answers(server: ServerProcess, world: World) -> None:
    responder = make_user(world.plain, sub={"allow": ["ask"]}, pub={}, resp={"max": 1, "ttl": 60_000_000_000})
    with server.client() as answering, server.client() as asking:
        come_in(answering, responder)
        come_in(asking, make_user(world.plain))
        answering.send(b"SUB ask 1\r\n")
        answering.expect_pong()
        asking.send(b"SUB reply 1\r\nPUB ask reply 0\r\n\r\n")
        answering.expect(b"MSG ask 1 reply 0\r\n\r\n")

        answering.send(b"PUB reply 2\r\nok\r\nPUB reply 2\r\nno\r\n")

        asking.expect(b"MSG reply 1 2\r\nok\r\n")
        answering.expect_error(f'{VIOLATION} Publish to "reply"')


def test_user_without_permissions_has_those_of_its_account(server: ServerProcess, world: World) -> None:
    check_rights(
        server,
        make_user(world.restrained),
        publishes=["given.a"],
        subscribes=["anything"],
        refused=["PUB other", "SUB secret"],
    )


def test_permissions_of_a_user_replace_those_of_its_account(server: ServerProcess, world: World) -> None:
    user = make_user(world.restrained, pub={"allow": ["own"]})

    check_rights(server, user, publishes=["own"], subscribes=["secret"], refused=["PUB given.a"])


def test_template_has_names_and_keys_filled_in(server: ServerProcess, world: World) -> None:
    user = world.scoped_user("named", name="ada")

    check_rights(
        server,
        user,
        publishes=["user.ada.x", f"key.{user.key.public}", "templated", "fixed"],
        subscribes=[f"of.{world.templated.public}.x", "ada.inbox"],
        refused=["PUB user.bob.x", "PUB key.x", "PUB other", "SUB of.x.y", "SUB bob.inbox", "SUB >"],
    )


def test_name_that_makes_no_subject_allows_nothing_by_it(server: ServerProcess, world: World) -> None:
    """What a value makes invalid is left out; it must not widen the rest."""
    user = world.scoped_user("named", name="ada lovelace")

    check_rights(
        server, user, publishes=["fixed"], subscribes=[], refused=["PUB user.ada", "PUB user.x", "SUB x.inbox"]
    )


def test_each_value_of_a_tag_becomes_a_subject(server: ServerProcess, world: World) -> None:
    user = world.scoped_user("tagged", tags=["team:red", "team:blue", "other:x"])

    check_rights(
        server,
        user,
        publishes=["red.harbour", "red.pier", "blue.harbour", "blue.pier"],
        subscribes=["red.>", "blue.x"],
        refused=["PUB red.x", "PUB x.pier", "SUB green.>"],
    )


def test_user_without_the_tags_of_a_template_may_nothing(server: ServerProcess, world: World) -> None:
    check_rights(
        server,
        world.scoped_user("tagged"),
        publishes=[],
        subscribes=[],
        refused=["PUB red.pier", "PUB x", "SUB red.>", "SUB x"],
    )


def test_user_without_a_tag_that_is_denied_is_refused(server: ServerProcess, world: World) -> None:
    """It would otherwise be denied nothing."""
    refuse(server, world.scoped_user("denied"))
    check_rights(
        server,
        world.scoped_user("denied", tags=["team:red"]),
        publishes=["blue.x"],
        subscribes=["red.x"],
        refused=["PUB red.x"],
    )


def test_template_with_an_unknown_function_refuses(server: ServerProcess, world: World) -> None:
    refuse(server, world.scoped_user("broken"))


def test_template_may_make_a_bearer_token(server: ServerProcess, world: World) -> None:
    with server.client() as client:
        client.connect(jwt=world.scoped_user("bearer").jwt)


def test_template_holds_for_networks_too(server: ServerProcess, world: World) -> None:
    refuse(server, world.scoped_user("limited"))


@pytest.mark.parametrize(
    "own",
    [
        {"pub": {"allow": [">"]}},
        {"sub": {"allow": [">"]}},
        {"subs": -1, "data": -1, "payload": -1},
        {"bearer_token": True},
        {"allowed_connection_types": ["STANDARD"]},
        {"src": ["0.0.0.0/0"]},
        {"resp": {"max": 1, "ttl": 1}},
    ],
    ids=str,
)
def test_user_of_a_scoped_key_must_not_have_rights_of_its_own(
    server: ServerProcess, world: World, own: dict[str, object]
) -> None:
    refuse(server, world.scoped_user("named", name="ada", **own))


def test_scoped_key_signs_for_its_account_only(server: ServerProcess, world: World) -> None:
    refuse(server, make_user(world.plain, issuer=world.keys["named"], claimed={}))


def test_payload_of_a_user_is_limited_by_the_lower_limit(server: ServerProcess, world: World) -> None:
    for account, own, limit in ((world.plain, 5, 5), (world.small, -1, 8), (world.small, 4, 4), (world.small, 100, 8)):
        with server.client() as client:
            come_in(client, make_user(account, payload=own))
            client.send(b"PUB a %d\r\n%s\r\n" % (limit, b"x" * limit))
            client.expect_pong()
            client.send(b"PUB a %d\r\n%s\r\n" % (limit + 1, b"x" * (limit + 1)))
            client.expect_error_and_closed("Maximum Payload Violation")


def test_subscriptions_of_a_user_are_limited_by_the_lower_limit(server: ServerProcess, world: World) -> None:
    for account, own, limit in ((world.plain, 3, 3), (world.small, -1, 2), (world.small, 1, 1), (world.small, 9, 2)):
        with server.client() as client:
            come_in(client, make_user(account, subs=own))
            for number in range(limit):
                client.send(b"SUB a %d\r\n" % number)
            client.expect_pong()
            client.send(b"SUB a 99\r\n")
            client.expect_error("maximum subscriptions exceeded")


def test_connections_of_an_account_are_limited(server: ServerProcess, world: World) -> None:
    with ExitStack() as stack:
        for _ in range(2):
            come_in(stack.enter_context(server.client()), make_user(world.small))

        refuse(server, make_user(world.small), "maximum account active connections exceeded")


def test_account_with_no_connections_lets_nobody_in(start_server: Callable[..., ServerProcess]) -> None:
    operator = Operator()
    closed = operator.add_account(limits={"conn": 0})
    server = start_server(config=operator.configuration())

    refuse(server, make_user(closed), "maximum account active connections exceeded")


def test_user_whose_claims_leave_out_limits_may_not_publish(server: ServerProcess, world: World) -> None:
    """What is left out is 0, and 0 is not unlimited."""
    claimed = {**ANY_USER}
    del claimed["payload"]
    with server.client() as client:
        come_in(client, make_user(world.plain, claimed=claimed))
        client.send(b"PUB a 1\r\nx\r\n")
        client.expect_error_and_closed("Maximum Payload Violation")


def test_user_that_may_not_subscribe_at_all_is_sent_away(server: ServerProcess, world: World) -> None:
    claimed = {**ANY_USER}
    del claimed["subs"]
    with server.client() as client:
        user = make_user(world.plain, claimed=claimed)
        client.send_connect(verbose=False, **user.presented(client.info["nonce"]))

        assert b"-ERR '" in client.read_to_end()


def strict_operator(signing_key: Key) -> Operator:
    return Operator(strict_signing_key_usage=True, signing_keys=[signing_key.public])


def test_strict_operator_signs_accounts_by_signing_keys_only(start_server: Callable[..., ServerProcess]) -> None:
    signing_key, own_key = Key("operator"), Key("account")
    operator = strict_operator(signing_key)
    operator.system.issuer = signing_key
    good = operator.add_account(issuer=signing_key, signing_keys=[own_key.public])
    bad = operator.add_account(issuer=operator.key)
    server = start_server(config=operator.configuration())

    with server.client() as client:
        come_in(client, make_user(good, issuer=own_key))
    refuse(server, make_user(good))
    refuse(server, make_user(bad))


def test_signing_key_of_the_operator_signs_accounts(start_server: Callable[..., ServerProcess]) -> None:
    signing_key = Key("operator")
    operator = Operator(signing_keys=[signing_key.public])
    account = operator.add_account(issuer=signing_key)
    unknown = operator.add_account(issuer=Key("operator"))
    server = start_server(config=operator.configuration())

    with server.client() as client:
        come_in(client, make_user(account))
    refuse(server, make_user(unknown))


def test_trusted_keys_do_instead_of_an_operator(start_server: Callable[..., ServerProcess]) -> None:
    operator = Operator()
    account = operator.add_account()
    server = start_server(
        config=f"trusted_keys: [{operator.key.public}]\nresolver: MEMORY\n{operator.preload()}"
        f"system_account: {operator.system.public}"
    )

    with server.client() as client:
        come_in(client, make_user(account))


def test_expired_account_lets_nobody_in(start_server: Callable[..., ServerProcess]) -> None:
    operator = Operator()
    expired = operator.add_account(exp=1_700_000_000)
    server = start_server(config=operator.configuration())

    refuse(server, make_user(expired))


def test_account_of_another_account_in_its_place_is_refused(start_server: Callable[..., ServerProcess]) -> None:
    """What is found under a key must be the claims of that key."""
    operator = Operator()
    one, other = operator.add_account(), operator.add_account()
    swapped = (
        f"resolver_preload {{\n{one.public}: {other.jwt()}\n{operator.system.public}: {operator.system.jwt()}\n}}\n"
    )
    server = start_server(config=operator.configuration(preload=swapped))

    refuse(server, make_user(one))


def test_account_that_signs_itself_is_refused(start_server: Callable[..., ServerProcess]) -> None:
    operator = Operator()
    own = operator.add_account()
    own.issuer = own.key
    server = start_server(config=operator.configuration())

    refuse(server, make_user(own))
