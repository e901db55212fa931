"""The key `users`: a list of users, each with a password or a public key, in `authorization` or in an account."""

from jetlake.server.authentication.passwords import HASH_ADVICE, is_usable
from jetlake.server.configuration.document import ConfigurationNode
from jetlake.server.configuration.permissions import read_permissions
from jetlake.server.configuration.section import Section
from jetlake.server.nkeys import is_public_user_key
from jetlake.server.options.users import CONNECTION_TYPES, Permissions, User

PROXY_REASON = "yet: let this user connect directly"


def read_users(section: Section, account: str, default_permissions: Permissions | None) -> list[User] | None:
    """Return the users under the key `users`; None = the key is not there."""
    entries = section.sections("users")
    if entries is None:
        return None
    users = [_read_user(entry, account, default_permissions) for entry in entries]
    return [user for user in users if user is not None]


def refuse_duplicates(node: ConfigurationNode | None, section: Section, users: list[User]) -> None:
    """Report names that occur twice: a user is found by its name alone, whatever its account."""
    seen: set[str] = set()
    for user in users:
        if user.name in seen:
            kind = "nkey" if user.nkey else "user"
            section.error(node, f'Duplicate {kind} "{user.name}" detected; a user belongs to one account')
        seen.add(user.name)


def _read_user(section: Section, account: str, default_permissions: Permissions | None) -> User | None:
    name = section.text("user", "username") or ""
    password = section.text("pass", "password") or ""
    key = section.text("nkey") or ""
    permissions = read_permissions(section, "permissions", "permission", "authorization")
    connection_types = _read_connection_types(section)
    if section.switch("proxy_required"):
        section.error(section.node("proxy_required"), f'"proxy_required" is not supported {PROXY_REASON}')
    section.finish()
    if key and (name or password):
        section.error(None, "Nkey users do not take usernames or passwords")
        return None
    if key and not is_public_user_key(key):
        section.error(None, "Not a valid public nkey for a user: it has 56 letters and digits and begins with U")
        return None
    if not key and not name:
        section.error(None, "User entry requires a user")
        return None
    if password and not is_usable(password):
        section.error(None, f'The password of user "{name}" is not a bcrypt hash: {HASH_ADVICE}')
        return None
    return User(
        name=key or name,
        password=password,
        nkey=bool(key),
        account=account,
        permissions=permissions or default_permissions,
        connection_types=connection_types,
    )


def _read_connection_types(section: Section) -> frozenset[str]:
    names = ("allowed_connection_types", "connection_types", "clients")
    types = frozenset(name.upper() for name in section.texts(*names) or ())
    unknown = sorted(types - CONNECTION_TYPES)
    if unknown:
        section.error(
            section.node(*names),
            f'unknown connection type "{unknown[0]}"; there are {", ".join(sorted(CONNECTION_TYPES))}',
        )
    return types
