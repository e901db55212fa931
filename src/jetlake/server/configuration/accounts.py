"""The blocks `authorization` and `accounts`: which users may log in, and to which account."""

import msgspec

from jetlake.server.authentication.passwords import HASH_ADVICE, is_usable
from jetlake.server.configuration.callout import check_callout, read_callout
from jetlake.server.configuration.document import ConfigurationNode, kind_of
from jetlake.server.configuration.exports import check_imports, read_exports, read_imports
from jetlake.server.configuration.jetstream import read_account_jetstream
from jetlake.server.configuration.mappings import read_mappings
from jetlake.server.configuration.message_trace import read_message_trace
from jetlake.server.configuration.permissions import read_permissions
from jetlake.server.configuration.section import Section
from jetlake.server.configuration.users import PROXY_REASON, read_users, refuse_duplicates
from jetlake.server.nkeys import is_public_account_key
from jetlake.server.options.accounts import AccessOptions, Account, Credentials
from jetlake.server.options.trust import TrustOptions
from jetlake.server.options.users import GLOBAL_ACCOUNT, SYSTEM_ACCOUNT, User

TRUST_KEYS = (
    *("operator", "operators", "roots", "root", "root_operators", "root_operator"),
    *("resolver", "account_resolver", "accounts_resolver", "resolver_preload", "resolver_pinned_accounts"),
    "resolver_tls",
    *("trusted", "trusted_keys", "default_sentinel"),
)
"""The keys of operator mode, which `operators` reads."""

TIMEOUT_S_HIGH = 60
"""Above this a number of seconds is more likely a duration without its quotes."""


def read_access(section: Section, *, map_certificates: bool) -> tuple[AccessOptions, float | None]:
    """Return who may come in, and how many seconds a client has to say who it is (None = not given)."""
    authorization = section.section("authorization")
    credentials, timeout_s, listed, callout = Credentials(), None, None, None
    if authorization is not None:
        callout = read_callout(authorization)
        credentials, timeout_s, listed = _read_authorization(authorization)
    accounts, users_of_accounts = _read_accounts(section)
    users = [*(listed or []), *users_of_accounts]
    refuse_duplicates(section.node("accounts") or section.node("authorization"), section, users)
    if credentials.required and (listed is not None or users):
        what = "token" if credentials.token else "single user/pass"
        section.error(section.node("authorization"), f"Can not have a {what} and a users array; list the user there")
    trust = _read_trust(section, has_accounts=bool(accounts), has_users=bool(users))
    if authorization is not None and callout is not None:
        check_callout(authorization, callout, accounts, has_trust=trust is not None)
    system_account = _read_system_account(section, accounts, trust)
    check_imports(section, accounts, system_account)
    no_auth_user = _read_no_auth_user(section, users)
    # A file that gives users to the system account alone means to monitor the server, not to close it.
    only_system_users = (
        bool(users_of_accounts)
        and authorization is None
        and section.node("no_auth_user") is None
        and all(account.name == system_account for account in accounts)
    )
    access = AccessOptions(
        credentials=credentials,
        users=tuple(users),
        accounts=tuple(accounts),
        no_auth_user=no_auth_user,
        mappings=read_mappings(section),
        system_account=system_account,
        map_certificates=map_certificates,
        only_system_users=only_system_users,
        trust=_with_system_account(trust, system_account),
        callout=callout,
    )
    return access, timeout_s


def _read_trust(section: Section, *, has_accounts: bool, has_users: bool) -> TrustOptions | None:
    if not any(section.node(key) is not None for key in TRUST_KEYS):
        return None
    # Only files that ask for operator mode wait for what checks signatures.
    from jetlake.server.configuration.operators import check_trust, read_trust

    trust = read_trust(section)
    if trust is not None:
        check_trust(section, trust, has_accounts=has_accounts, has_users=has_users)
    return trust


def _with_system_account(trust: TrustOptions | None, system_account: str) -> TrustOptions | None:
    """Return them so that users of the system account may come in, whichever accounts are pinned."""
    if trust is None or not trust.pinned_accounts:
        return trust
    return msgspec.structs.replace(trust, pinned_accounts=trust.pinned_accounts | {system_account})


def _read_no_auth_user(section: Section, users: list[User]) -> str:
    name = section.text("no_auth_user") or ""
    if name and not any(user.name == name for user in users):
        section.error(
            section.node("no_auth_user"),
            f'no_auth_user: "{name}" not present as user or nkey in authorization block or account configuration',
        )
        return ""
    return name


def read_credentials(section: Section) -> Credentials:
    """Return the user and password, or the token, that all clients share."""
    credentials = Credentials(
        user=section.text("user", "username") or "",
        password=section.text("pass", "password") or "",
        token=section.text("token") or "",
    )
    for name, secret in (("password", credentials.password), ("token", credentials.token)):
        if not is_usable(secret):
            section.error(section.node(name), f"The {name} is not a bcrypt hash: {HASH_ADVICE}")
    return credentials


def _read_authorization(section: Section) -> tuple[Credentials, float | None, list[User] | None]:
    credentials = read_credentials(section)
    if credentials.token and (credentials.user or credentials.password):
        section.error(section.node("token"), "Cannot have a user/pass and token; remove one of them")
    timeout_s = section.seconds("timeout")
    if timeout_s is not None and timeout_s > TIMEOUT_S_HIGH:
        node = section.node("timeout")
        assert node is not None
        section.problems.warning(
            node.position,
            f'invalid use of field "timeout": {timeout_s:g} seconds is high, consider keeping it under '
            f"{TIMEOUT_S_HIGH} seconds; a duration without quotes counts as seconds, write '1m' instead of 1m",
        )
    default_permissions = read_permissions(section, "default_permissions", "default_permission", "permissions")
    users = read_users(section, GLOBAL_ACCOUNT, default_permissions)
    if section.switch("proxy_required"):
        section.error(section.node("proxy_required"), f'"proxy_required" is not supported {PROXY_REASON}')
    listed = section.node("users")
    if listed is not None and listed.data == []:
        # nats-server would let everybody in, which the author of the file surely did not mean.
        section.error(listed, '"users" is empty: remove it to let everybody in, or add a user')
    section.finish()
    return credentials, timeout_s, users


def _read_accounts(section: Section) -> tuple[list[Account], list[User]]:
    node = section.node("accounts")
    if node is None:
        return [], []
    if isinstance(node.data, list):
        names = section.texts("accounts") or ()
        for position, name in enumerate(names):
            _check_name(section, name, node)
            if name in names[:position]:
                section.error(node, f"Duplicate Account Entry: {name}")
        return [Account(name=name) for name in names], []
    if not isinstance(node.data, dict):
        section.error(node, f'"accounts" must be a map of accounts or a list of names, not {kind_of(node.data)}')
        return [], []
    accounts, users = [], []
    for name, entry in Section(node, section.problems).entries():
        _check_name(section, name, entry)
        if not isinstance(entry.data, dict):
            section.error(entry, f'Expected map entries for accounts: "{name}" is {kind_of(entry.data)}')
            continue
        account, users_of_account = _read_account(name, Section(entry, section.problems))
        accounts.append(account)
        users += users_of_account
    return accounts, users


def _read_account(name: str, section: Section) -> tuple[Account, list[User]]:
    default_permissions = read_permissions(section, "default_permissions")
    users = read_users(section, name, default_permissions) or []
    key = section.text("nkey")
    if key is not None and not is_public_account_key(key):
        section.error(section.node("nkey"), "Not a valid public nkey for an account: it begins with A")
    jetstream = read_account_jetstream(section)
    limits: dict[str, int | None] = {}
    inner = section.section("limits")
    if inner is not None:
        limits = {
            "max_connections": _limit(inner, "max_connections", "max_conn"),
            "max_leafnodes": _limit(inner, "max_leafnodes", "max_leafs"),
            "max_subscriptions": _limit(inner, "max_subscriptions", "max_subs"),
            "max_payload_bytes": _limit(inner, "max_payload", "max_pay"),
        }
        inner.finish()
    message_trace = read_message_trace(section)
    mappings = read_mappings(section)
    exports, imports = read_exports(section), read_imports(section)
    section.finish()
    return Account(
        name=name,
        jetstream=jetstream,
        message_trace=message_trace,
        mappings=mappings,
        exports=exports,
        imports=imports,
        **limits,
    ), users


def _limit(section: Section, *names: str) -> int | None:
    value = section.integer(*names)
    return None if value is None or value < 0 else value


def _check_name(section: Section, name: str, node: ConfigurationNode) -> None:
    if name == GLOBAL_ACCOUNT:
        section.error(node, f'"{name}" is a Reserved Account; its users belong into authorization')
    elif not name or any(character.isspace() for character in name):
        section.error(node, f'"{name}" cannot be the name of an account: it must not be empty or contain blanks')


def _read_system_account(section: Section, accounts: list[Account], trust: TrustOptions | None) -> str:
    chosen = section.text("system_account", "system")
    if trust is not None:
        from jetlake.server.configuration.operators import read_claimed_system_account

        chosen = read_claimed_system_account(section, trust) or None
    none = section.switch("no_system_account", "no_system", "no_sys_acc")
    if chosen is None:
        return "" if none else SYSTEM_ACCOUNT
    if none:
        section.error(section.node("system_account", "system"), "a system account is both chosen and switched off")
    if trust is None and chosen != SYSTEM_ACCOUNT and chosen not in [account.name for account in accounts]:
        section.error(
            section.node("system_account", "system"),
            f'the system account "{chosen}" is not defined; add it to accounts',
        )
    return chosen
