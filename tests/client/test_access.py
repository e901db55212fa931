"""How a server is reached: options over variables over contexts, and every kind of credentials."""

import asyncio
from pathlib import Path

import pytest

import jetlake
from jetlake.cli.server_pages import read_page
from jetlake.client import contexts
from jetlake.client.access import Access, connect, resolve
from jetlake.errors import ClientError, ConfigurationError
from tests.compatibility.certificates import Authority


def test_nothing_said_is_this_machine():
    assert resolve({}, environment={}) == Access(url="nats://127.0.0.1:4222")


def test_options_win_over_variables_over_contexts():
    contexts.write("c", {"url": "nats://context:1", "inbox_prefix": "_C", "user": "ada", "password": "pw"})
    variables = {"NATS_CONTEXT": "c", "NATS_URL": "nats://variable:1", "NATS_TIMEOUT": "1500ms"}

    access = resolve({"url": "nats://option:1"}, environment=variables)

    assert (access.url, access.inbox_prefix, access.timeout_s) == ("nats://option:1", "_C", 1.5)
    assert (access.user, access.password) == ("ada", "pw")
    assert resolve({}, environment=variables).url == "nats://variable:1"


def test_credentials_are_taken_from_one_place():
    contexts.write("c", {"user": "ada", "password": "pw", "creds": "/x.creds"})

    by_token = resolve({"token": "t"}, context="c", environment={})
    by_password = resolve({"password": "new"}, context="c", environment={})

    assert (by_token.user, by_token.password, by_token.credentials, by_token.token) == (None, None, None, "t")
    assert (by_password.user, by_password.password, by_password.credentials) == ("ada", "new", None)


def test_chosen_context_is_used_and_one_that_is_gone_is_not():
    contexts.write("c", {"url": "nats://context:1"})
    contexts.choose("c")
    assert resolve({}, environment={}).url == "nats://context:1"

    (contexts.folder() / "context" / "c.json").unlink()

    assert resolve({}, environment={}).url == "nats://127.0.0.1:4222"


def test_paths_know_home_and_variables(monkeypatch):
    monkeypatch.setenv("HOME", "/users/ada")
    monkeypatch.setenv("FOLDER", "/keys")

    access = resolve({"credentials": "~/a.creds", "nkey": "$FOLDER/user.nk"}, environment={})

    assert (access.credentials, access.nkey) == (Path("/users/ada/a.creds"), Path("/keys/user.nk"))


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"timeout_s": "soon"}, "is not a time"),
        ({"timeout_s": "0s"}, "give more than 0"),
        ({"url": " , "}, "no server is named"),
        ({"url": "http://host"}, "is not a server address"),
        ({"url": "nats://host:port"}, "is not a server address"),
        ({"url": "nats://host:99999"}, "is not a server address"),
        ({"url": "nats://"}, "is not a server address"),
        ({"url": "nats://[::1"}, "is not a server address"),
        ({"url": "nats://a\nb"}, "is not a server address"),
        ({"tls_certificate": "/a.pem"}, "belong together"),
        ({"credentials": "op://vault/item"}, "is not a file"),
    ],
)
def test_what_cannot_work_is_refused(options, text):
    with pytest.raises(ConfigurationError, match=text):
        resolve(options, environment={})


def test_context_that_needs_other_tools_is_refused():
    contexts.write("c", {"url": "nats://a:1", "nsc": "nsc://operator/account/user", "socks_proxy": ""})

    with pytest.raises(ConfigurationError, match="the context 'c' has nsc, which only"):
        resolve({}, context="c", environment={})


def test_subjects_of_the_api_have_a_prefix_or_a_domain():
    assert Access().api_subject("INFO") == "$JS.API.INFO"
    assert Access(api_prefix="other.api.").api_subject("INFO") == "other.api.INFO"
    assert Access(domain="hub").api_subject("INFO") == "$JS.hub.API.INFO"


def test_address_is_shown_without_secrets():
    assert Access(url="ada:pw@a:1, nats://token@b:2").shown == "nats://a:1, nats://b:2"


async def test_first_server_that_answers_is_taken(jetlake_server):
    connection = await connect(Access(url=f"nats://127.0.0.1:1,{jetlake_server.url}"))

    assert connection.is_connected
    await connection.close()


async def test_server_that_is_not_there_is_told_at_once():
    with pytest.raises(
        ClientError, match=r"cannot connect to nats://127.0.0.1:1: .*Nothing is listening at 127.0.0.1:1"
    ):
        await connect(Access(url="nats://ada:pw@127.0.0.1:1"))


@pytest.mark.parametrize("right", [True, False])
async def test_users_and_tokens_are_presented(right):
    word = "pw" if right else "wrong"
    for options, access in (
        ({"user": "ada", "password": "pw"}, {"user": "ada", "password": word}),
        ({"token": "pw"}, {"token": word}),
    ):
        with jetlake.Server(**options) as server:
            if right:
                await (await connect(Access(url=server.url, **access))).close()
            else:
                with pytest.raises(ClientError, match=r"rejected the login\. Check the (password of user ada|token)"):
                    await connect(Access(url=server.url, **access))


async def test_server_with_tls_is_reached_by_its_authority_and_by_a_certificate(tmp_path):
    authority = Authority(tmp_path)
    pair, own = authority.server(), authority.client()
    files = f'cert_file: "{pair.certificate_file}", key_file: "{pair.key_file}", ca_file: "{authority.file}"'

    with jetlake.Server(config=f"tls {{ {files}, verify: true }}") as server:
        with pytest.raises(ClientError):
            await connect(Access(url=server.url, tls_ca=authority.file))
        access = Access(
            url=server.url, tls_ca=authority.file, tls_certificate=own.certificate_file, tls_key=own.key_file
        )
        connection = await connect(access)

        assert connection.is_connected
        await connection.close()


@pytest.mark.parametrize("access", [{"url": "tls"}, {"tls_ca": True}])
async def test_nothing_is_said_in_the_clear_when_tls_is_wanted(jetlake_server, tmp_path, access):
    url = jetlake_server.url.replace("nats://", "tls://") if "url" in access else jetlake_server.url
    authority = Authority(tmp_path).file if "tls_ca" in access else None

    with pytest.raises(ClientError, match="TLS is wanted, and the server has none"):
        await connect(Access(url=url, tls_ca=authority, user="ada", password="pw"))


async def test_server_that_leaves_the_choice_is_spoken_to_in_tls(tmp_path):
    authority = Authority(tmp_path)
    pair = authority.server()
    files = f'cert_file: "{pair.certificate_file}", key_file: "{pair.key_file}"'

    with jetlake.Server(config=f"tls {{ {files} }}\nallow_non_tls: true", monitor_port=0) as server:
        connection = await connect(Access(url=server.url, tls_ca=authority.file))
        page = await asyncio.to_thread(read_page, server.monitor_url, "connz", {"auth": 1})

        assert page["connections"][0]["tls_version"]
        await connection.close()


async def test_hands_can_be_shaken_first(tmp_path):
    authority = Authority(tmp_path)
    pair = authority.server()
    config = f'tls {{ cert_file: "{pair.certificate_file}", key_file: "{pair.key_file}", handshake_first: true }}'

    with jetlake.Server(config=config) as server:
        connection = await connect(Access(url=server.url, tls_ca=authority.file, tls_first=True))

        assert connection.is_connected
        await connection.close()


async def test_tls_file_that_is_none_is_told(tmp_path):
    path = tmp_path / "ca.pem"
    path.write_text("nothing")

    with pytest.raises(ClientError, match="TLS file"):
        await connect(Access(tls_ca=path))
    with pytest.raises(ClientError, match="TLS file"):
        await connect(Access(tls_ca=tmp_path / "none"))
