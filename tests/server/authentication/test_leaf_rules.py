"""Leaf nodes: users of their own, or those of the server, and the account that they come into."""

import base64
import json

import nkeys
import pytest

from jetlake.server.authentication.authenticator import Authenticator
from jetlake.server.authentication.presented import Login
from jetlake.server.authentication.verdict import Verdict
from jetlake.server.configuration.load import load_text

SEED = b"SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY"
PUBLIC = "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4"
NONCE = "PXoWU7zWAMt75FY"

# Of the password "secret", with the lowest cost there is.
HASH = "$2b$04$En96ugxyIhOm3Db1IULX5ObmugSFMtiGfPg.i15/I0xZrVfAZ44Mi"

ACCOUNTS = "accounts { A { limits { max_conn: 1, max_subs: 2 } }, B {} }"

WAYS = ("LEAFNODE", "LEAFNODE_WS")


def by(text, claims=None):
    options = load_text(text).options
    return Authenticator(options.access, claims=claims, leaf=options.leaf)


def login(connection_type="LEAFNODE", **fields):
    renamed = {"pass" if name == "password" else name: value for name, value in fields.items()}
    return Login(connect=json.dumps(renamed).encode(), nonce=NONCE, connection_type=connection_type)


@pytest.mark.parametrize("way", WAYS)
def test_user_of_the_block_comes_into_its_account_and_is_not_a_client(way):
    authenticator = by(
        f"leafnodes {{ port: -1, authorization {{ user: edge, password: secret, account: A }} }}\n{ACCOUNTS}"
    )

    # The limit of connections is one of clients.
    admitted = Verdict(account="A", user="edge", max_subscriptions=2)
    assert authenticator.decide(login(way, user="edge", password="secret")) == admitted
    for wrong in ({}, {"user": "edge"}, {"user": "edge", "password": "wrong"}, {"user": "eve", "password": "secret"}):
        assert authenticator.decide(login(way, **wrong)) is None
    assert authenticator.decide(login("STANDARD")) == Verdict(account="$G", user="")


def test_each_user_has_its_own_account():
    authenticator = by(
        "leafnodes { port: -1, authorization { users: [{user: a, password: p, account: A}, {user: g, password: p}] } }"
        f"\n{ACCOUNTS}"
    )

    assert authenticator.decide(login(user="a", password="p")).account == "A"
    assert authenticator.decide(login(user="g", password="p")).account == "$G"


def test_key_signs_the_nonce():
    authenticator = by(f"leafnodes {{ port: -1, authorization {{ nkey: {PUBLIC}, account: B }} }}\n{ACCOUNTS}")
    raw = nkeys.from_seed(bytearray(SEED)).sign(NONCE.encode())
    signature = base64.urlsafe_b64encode(raw).rstrip(b"=").decode()

    assert authenticator.decide(login(nkey=PUBLIC, sig=signature)) == Verdict(account="B", user=PUBLIC)
    assert authenticator.decide(login(nkey=PUBLIC, sig=signature[:-2])) is None
    assert authenticator.decide(login()) is None


def test_password_of_the_block_may_be_a_hash():
    authenticator = by(f"leafnodes {{ port: -1, authorization {{ user: edge, password: '{HASH}' }} }}")

    assert authenticator.slow
    assert authenticator.decide(login(user="edge", password="secret")) == Verdict(account="$G", user="edge")


def test_users_of_the_server_come_in_as_leaf_nodes_if_their_connection_types_say_so():
    authenticator = by(
        """
        leafnodes { port: -1 }
        accounts { A { users: [
          {user: any, password: p}
          {user: leaf, password: p, connection_types: [LEAFNODE]}
          {user: web, password: p, connection_types: [LEAFNODE_WS]}
          {user: client, password: p, connection_types: [STANDARD]}
        ] } }
        """
    )

    def ways(user):
        return [way for way in (*WAYS, "STANDARD") if authenticator.decide(login(way, user=user, password="p"))]

    assert ways("any") == [*WAYS, "STANDARD"]
    assert ways("leaf") == ["LEAFNODE"]
    assert ways("web") == ["LEAFNODE_WS"]
    assert ways("client") == ["STANDARD"]


def test_users_of_the_block_replace_those_of_the_server_for_leaf_nodes_alone():
    authenticator = by(
        """
        leafnodes { port: -1, authorization { user: edge, password: p } }
        authorization { users: [{user: ada, password: p}] }
        """
    )

    assert authenticator.decide(login(user="ada", password="p")) is None
    assert authenticator.decide(login("STANDARD", user="ada", password="p")) is not None
    assert authenticator.decide(login("STANDARD", user="edge", password="p")) is None


def test_leaf_nodes_come_into_the_account_of_the_block_if_nobody_logs_in():
    authenticator = by(f"leafnodes {{ port: -1, authorization {{ account: B }} }}\n{ACCOUNTS}")

    assert authenticator.decide(login()) == Verdict(account="B", user="")
    assert authenticator.decide(login("STANDARD")) == Verdict(account="$G", user="")


class Claims:
    """Refuses everybody, and remembers who asked."""

    is_slow = False

    def __init__(self):
        self.asked = []

    def decide(self, asking):
        self.asked.append(asking.connection_type)

    decide_quickly = decide


def test_claims_decide_about_leaf_nodes_unless_the_block_has_a_user():
    claims = Claims()

    by("leafnodes { port: -1 }", claims).decide(login())
    authenticator = by("leafnodes { port: -1, authorization { user: edge, password: p } }", claims)

    assert authenticator.decide(login(user="edge", password="p")) == Verdict(account="$G", user="edge")
    assert claims.asked == ["LEAFNODE"]
