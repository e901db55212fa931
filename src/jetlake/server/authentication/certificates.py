"""The names in a client's certificate, in the order in which `verify_and_map` tries them as user names.

E-mail addresses, DNS names and URIs of the certificate come first, each as it stands. Then its subject: equal to the
user name read as a distinguished name, in the same order or in any; at last, as the text that Go makes of it.

All parts of a distinguished name must match, as often as they occur: a name that is only contained in another is
another name.
"""

from collections import Counter
from collections.abc import Callable, Iterable

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.x509.oid import NameOID

from jetlake.server.authentication.alternative_names import read_alternative_names

# Imported by nobody but servers that look into the certificates of clients.

UNREADABLE = (
    *(ValueError, TypeError, UnsupportedAlgorithm),
    *(x509.InvalidVersion, x509.DuplicateExtension, x509.UnsupportedGeneralNameType),
)
"""What `cryptography` raises for a certificate that it does not read. Anybody may send one."""

GO_ORDER = (
    (NameOID.SERIAL_NUMBER, "SERIALNUMBER"),
    (NameOID.COMMON_NAME, "CN"),
    (NameOID.POSTAL_CODE, "POSTALCODE"),
    (NameOID.STREET_ADDRESS, "STREET"),
    (NameOID.STATE_OR_PROVINCE_NAME, "ST"),
    (NameOID.LOCALITY_NAME, "L"),
    (NameOID.ORGANIZATIONAL_UNIT_NAME, "OU"),
    (NameOID.ORGANIZATION_NAME, "O"),
    (NameOID.COUNTRY_NAME, "C"),
)
"""The parts of a subject that Go writes, in its order; values of one kind stand together."""

SHORT_NAMES = {
    "CN": NameOID.COMMON_NAME,
    "SERIALNUMBER": NameOID.SERIAL_NUMBER,
    "C": NameOID.COUNTRY_NAME,
    "L": NameOID.LOCALITY_NAME,
    "ST": NameOID.STATE_OR_PROVINCE_NAME,
    "STREET": NameOID.STREET_ADDRESS,
    "O": NameOID.ORGANIZATION_NAME,
    "OU": NameOID.ORGANIZATIONAL_UNIT_NAME,
    "POSTALCODE": NameOID.POSTAL_CODE,
    "DC": NameOID.DOMAIN_COMPONENT,
    "UID": NameOID.USER_ID,
}
"""The kinds a user name may be written with, as in nats-server; a subject with another kind maps by Go's text only."""

ESCAPED = ',+"\\<>;'

RelativeName = frozenset[tuple[str, str]]
"""The parts of one step of a distinguished name: pairs of a kind, in capitals, and a value."""


def find_user(der: bytes, user_names: Iterable[str], allowed: Callable[[str], bool]) -> str | None:
    """Return the name of the user that this certificate belongs to; None = there is none."""
    try:
        certificate = x509.load_der_x509_certificate(der)
        alternative = alternative_names(certificate)
        subject = certificate.subject
    except UNREADABLE:
        return None
    names = [name for name in user_names if allowed(name)]
    for name in alternative:
        if name in names:
            return name
    steps = relative_names(subject)
    if steps is not None:
        parsed = {name: parsed for name in names if (parsed := parse_distinguished_name(name))}
        for same in (lambda mine: mine == steps, lambda mine: Counter(mine) == Counter(steps)):
            for name, mine in parsed.items():
                if same(mine):
                    return name
    for text in go_texts(subject):
        if text in names:
            return text
    return None


def alternative_names(certificate: x509.Certificate) -> list[str]:
    """Return e-mail addresses, DNS names and URIs, in this order."""
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return []
    except x509.UnsupportedGeneralNameType:
        # nats-server passes over names of kinds that it does not know.
        return read_alternative_names(certificate.tbs_certificate_bytes)
    return [
        *names.get_values_for_type(x509.RFC822Name),
        *names.get_values_for_type(x509.DNSName),
        *names.get_values_for_type(x509.UniformResourceIdentifier),
    ]


def relative_names(subject: x509.Name) -> list[RelativeName] | None:
    """Return the steps of a subject, the most specific first; None = it has a kind of part that no user name has."""
    kinds = {oid: kind for kind, oid in SHORT_NAMES.items()}
    steps = []
    for step in reversed(subject.rdns):
        parts = [(kinds.get(part.oid), part.value) for part in step]
        if any(kind is None or not isinstance(value, str) for kind, value in parts):
            return None
        steps.append(frozenset((str(kind), str(value)) for kind, value in parts))
    return steps


def parse_distinguished_name(text: str) -> list[RelativeName]:
    """Return the steps of a distinguished name as RFC 4514 writes it: `CN=alice,OU=a+OU=b`. Empty = it is none."""
    steps: list[list[tuple[str, str]]] = [[]]
    for part, ends_step in _split(text):
        kind, equals, value = part.partition("=")
        decoded = _unescape(value)
        if not equals or not kind.strip() or decoded is None:
            return []
        steps[-1].append((kind.strip().upper(), decoded))
        if ends_step:
            steps.append([])
    if not steps[-1]:
        return []
    # Parts that repeat would vanish in a set, and a name must not match by vanishing.
    if any(len(set(step)) != len(step) for step in steps):
        return []
    return [frozenset(step) for step in steps]


def _split(text: str) -> list[tuple[str, bool]]:
    """Split at `,` and `+` that are not escaped; with each part comes whether a comma follows."""
    parts, start, position = [], 0, 0
    while position < len(text):
        if text[position] == "\\":
            position += 1
        elif text[position] in ",+":
            parts.append((text[start:position], text[position] == ","))
            start = position + 1
        position += 1
    return [*parts, (text[start:], False)]


def _unescape(value: str) -> str | None:
    """Return a value without its escapes and outer blanks; None = it is damaged, or binary."""
    stripped = value.lstrip(" ")
    if stripped.startswith("#"):
        return None
    content = bytearray()
    kept = 0
    position = 0
    while position < len(stripped):
        character = stripped[position]
        position += 1
        if character == "\\":
            following = stripped[position : position + 1]
            if following and following in ' "#+,;<=>\\':
                content += following.encode()
                position += 1
            else:
                try:
                    content += bytes.fromhex(stripped[position : position + 2])
                except ValueError:
                    return None
                position += 2
            kept = len(content)
        else:
            content += character.encode()
            if character != " ":
                kept = len(content)
    try:
        return bytes(content[:kept]).decode()
    except UnicodeDecodeError:
        return None


def go_texts(subject: x509.Name) -> list[str]:
    """Return the subject as Go prints it: first with its domain components at the end, if it has any, then without."""
    parts = []
    for oid, kind in GO_ORDER:
        values = [str(part.value) for part in subject.get_attributes_for_oid(oid)]
        if values:
            parts.append("+".join(f"{kind}={_escape(value)}" for value in values))
    text = ",".join(parts)
    components = [f"DC={part.value!s}" for part in subject.get_attributes_for_oid(NameOID.DOMAIN_COMPONENT)]
    return [",".join([text, *components]), text] if components else [text]


def _escape(value: str) -> str:
    escaped = "".join(f"\\{character}" if character in ESCAPED else character for character in value)
    if escaped.startswith(("#", " ")):
        escaped = f"\\{escaped}"
    return f"{escaped[:-1]}\\ " if escaped.endswith(" ") and len(escaped) > 1 else escaped
