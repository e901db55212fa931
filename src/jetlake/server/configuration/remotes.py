"""The block `remotes` of `jetstream`: other servers and accounts that streams may be copied from.

No mistake repeats an address: it may hold a password.
"""

import urllib.parse

from jetlake.server.addresses import DEFAULT_PORT
from jetlake.server.configuration.document import kind_of
from jetlake.server.configuration.section import Section
from jetlake.server.options.remote_files import RemoteTls
from jetlake.server.options.remotes import Remote

SCHEMES = ("nats", "tls")

RESERVED = ("API", "ACK", "FC", "EVENT")
"""As a name, or a domain, these would make something an API that is not one."""


def read_remotes(section: Section, *, own_domain: str) -> tuple[Remote, ...]:
    """Return the remotes of the block `jetstream`."""
    inner = section.section("remotes")
    if inner is None:
        return ()
    remotes: list[Remote] = []
    owners = {f"$JS.{own_domain}.API": "this server's own domain"} if own_domain else {}
    for name, node in inner.entries():
        if not isinstance(node.data, dict):
            inner.error(node, f'the remote "{name}" must be a map, not {kind_of(node.data)}')
            continue
        remote = _read_remote(name, Section(node, section.problems))
        if remote is None:
            continue
        for api in remote.api_names:
            if api in owners:
                inner.error(
                    node, f'the remote "{name}" answers to {api}, and so does {owners[api]}: rename one of them'
                )
            owners[api] = f'the remote "{name}"'
        remotes.append(remote)
    return tuple(remotes)


def check_accounts(section: Section, remotes: tuple[Remote, ...], accounts: set[str]) -> None:
    """Report remotes that name accounts which are not there. They are known only when the whole file is read."""
    for remote in remotes:
        for account in [*([remote.account] if remote.account is not None else []), *remote.allowed_accounts]:
            if account not in accounts:
                section.error(
                    section.node("jetstream"),
                    f'the remote "{remote.name}" names the account "{account}", and there is none: add it to accounts',
                )


def _read_remote(name: str, section: Section) -> Remote | None:
    account = section.text("account")
    urls = section.texts("url", "urls")
    addresses, user, password, is_secure = _read_urls(section, urls or ())
    tls = _read_tls(section)
    remote = Remote(
        name=name,
        account=account,
        addresses=addresses,
        user=section.text("user", "username") or user,
        password=section.text("password", "pass") or password,
        token=section.text("token") or "",
        seed_file=section.path("nkey") or "",
        credentials_file=section.path("credentials", "creds") or "",
        tls=RemoteTls() if tls is None and is_secure else tls,
        domain=section.text("domain") or "",
        api_prefix=section.text("api_prefix") or "",
        allowed_accounts=section.texts("allowed_accounts") or (),
    )
    section.finish()
    mistakes = list(_mistakes_of(remote, has_urls=urls is not None))
    for mistake in mistakes:
        section.error(None, f'the remote "{name}" {mistake}')
    return None if mistakes else remote


def _mistakes_of(remote: Remote, *, has_urls: bool) -> list[str]:
    mistakes = []
    for what, word in (("name", remote.name), ("domain", remote.domain)):
        is_token = not any(character.isspace() or character in ".*>" for character in word)
        if (what == "name" and not word) or not is_token or word in RESERVED:
            mistakes.append(f"has a {what} that cannot be part of $JS.<{what}>.API: use letters, digits, '-' and '_'")
    prefix = remote.api_prefix
    if prefix and (any(token in ("", "*", ">") for token in prefix.split(".")) or len(prefix.split()) != 1):
        mistakes.append("has an api_prefix that is not a subject without wildcards, such as js.hub.API")
    logins = [remote.user or remote.password, remote.token, remote.seed_file, remote.credentials_file]
    is_connection = has_urls or any(logins) or remote.tls or remote.domain or prefix
    if remote.account is not None and is_connection:
        mistakes.append("is an account of this server: leave out url, logins, tls, domain and api_prefix")
    if remote.account is not None and not remote.allowed_accounts:
        mistakes.append(
            "lets streams read another account: name those that may in allowed_accounts, such as allowed_accounts: [A]"
        )
    if remote.account is None and not has_urls:
        mistakes.append("has neither url nor account: name the server, or an account of this one")
    if sum(bool(login) for login in logins) > 1:
        mistakes.append("has several logins: keep one of user, token, nkey, credentials")
    if remote.password and not remote.user:
        mistakes.append("has a password and no user")
    if remote.tls is not None and bool(remote.tls.certificate_file) != bool(remote.tls.key_file):
        mistakes.append("has one of cert_file and key_file: a certificate needs its key")
    return mistakes


def _read_urls(section: Section, urls: tuple[str, ...]) -> tuple[tuple[str, ...], str, str, bool]:
    """Return the addresses, the user and the password of the first URL that has them, and whether TLS is asked for."""
    addresses, user, password, is_secure = [], "", "", False
    for number, url in enumerate(urls, 1):
        try:
            parts = urllib.parse.urlsplit(url if "://" in url else f"nats://{url}")
            port = parts.port or DEFAULT_PORT
        except ValueError:
            parts, port = urllib.parse.urlsplit(""), 0
        if parts.scheme not in SCHEMES or not parts.hostname or parts.path not in ("", "/") or parts.query:
            section.error(
                section.node("url", "urls"), f"url number {number} is none: write nats://host:4222 or tls://…"
            )
            continue
        host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        addresses.append(f"{host}:{port}")
        user = user or urllib.parse.unquote(parts.username or "")
        password = password or urllib.parse.unquote(parts.password or "")
        is_secure = is_secure or parts.scheme == "tls"
    return tuple(addresses), user, password, is_secure


def _read_tls(section: Section) -> RemoteTls | None:
    inner = section.section("tls")
    if inner is None:
        return None
    tls = RemoteTls(
        authority_file=inner.path("ca_file") or "",
        certificate_file=inner.path("cert_file") or "",
        key_file=inner.path("key_file") or "",
        handshake_first=bool(inner.switch("handshake_first", "first")),
    )
    inner.finish()
    return tls
