"""nats-server's command line: its flags, in the syntax of Go's `flag` package.

One or two dashes mean the same; a value follows as `-f value` or `-f=value`; a switch is `-f` or `-f=false` and
takes no second word; parsing stops at the first word that is not a flag, or after `--`. Go's error texts are kept,
because wrappers match on them.

Invariant: every flag that nats-server accepts is in `FLAGS`, once; usage text, parser and reference page all come
from it.
"""

from jetlake.errors import ConfigurationError

# A type checker takes this name for true; not importing `typing` keeps the start fast.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    Kind = Literal["switch", "number", "text"]

INTEGER_BITS = 64
"""Go's int on the machines we run on."""

TRUE_WORDS = frozenset({"1", "t", "T", "true", "TRUE", "True"})
FALSE_WORDS = frozenset({"0", "f", "F", "false", "FALSE", "False"})

USAGE_COLUMN = 37
"""Where the explanations of the usage text begin."""


class FlagError(ConfigurationError):
    """The command line cannot be read; the message is the one of Go's flag package."""


class Flag:
    """One option of the command line under all its names; the last name is the one values are filed under.

    A plain class, as `ParsedFlags` is: a server reads its command line before it loads anything that makes better ones.
    """

    __slots__ = ("argument", "explanation", "kind", "names", "section")

    def __init__(self, section: str, kind: "Kind", names: tuple[str, ...], argument: str, explanation: str) -> None:
        self.section = section
        self.kind = kind
        self.names = names
        self.argument = argument
        self.explanation = explanation

    @property
    def field(self) -> str:
        return self.names[-1]


FLAGS = (
    Flag("Server", "text", ("a", "net", "addr"), "<host>", "Bind to host address (default: 0.0.0.0)"),
    Flag("Server", "number", ("p", "port"), "<port>", "Port for clients, -1 for a random one (default: 4222)"),
    Flag("Server", "text", ("n", "name", "server_name"), "<name>", "Server name (default: the server id)"),
    Flag("Server", "text", ("P", "pid"), "<file>", "File to write the process id to"),
    Flag("Server", "number", ("m", "http_port"), "<port>", "Port for http monitoring"),
    Flag("Server", "number", ("ms", "https_port"), "<port>", "Port for https monitoring"),
    Flag("Server", "text", ("c", "config"), "<file>", "Configuration file"),
    Flag("Server", "switch", ("t",), "", "Test the configuration file and exit"),
    Flag(
        "Server",
        "text",
        ("sl", "signal"),
        "<signal>[=<pid>]",
        "Send a signal to a running server: ldm, stop, quit, term, reopen, reload; <pid> is a number or a pid file",
    ),
    Flag("Server", "text", ("client_advertise",), "<host[:port]>", "Address to show to clients"),
    Flag("Server", "text", ("ports_file_dir",), "<dir>", "Write <program>_<pid>.ports, a JSON list of ports, here"),
    Flag("Logging", "text", ("l", "log"), "<file>", "File to write the log to instead of stderr"),
    Flag("Logging", "switch", ("T", "logtime"), "", "Timestamp log lines (default: true)"),
    Flag("Logging", "switch", ("logtime_utc",), "", "Timestamps in UTC instead of local time"),
    Flag("Logging", "switch", ("s", "syslog"), "", "Log to syslog"),
    Flag("Logging", "text", ("r", "remote_syslog"), "<addr>", "Log to a syslog server (udp://localhost:514)"),
    Flag("Logging", "switch", ("D", "debug"), "", "Log debugging lines"),
    Flag("Logging", "switch", ("V", "trace"), "", "Log the protocol"),
    Flag("Logging", "switch", ("VV",), "", "Log the protocol, system account included"),
    Flag("Logging", "switch", ("DV",), "", "Debug and trace"),
    Flag("Logging", "switch", ("DVV",), "", "Debug and trace, system account included"),
    Flag("Logging", "number", ("log_size_limit",), "<bytes>", "Size at which the log file is rotated (default: never)"),
    Flag("Logging", "number", ("max_traced_msg_len",), "<bytes>", "Longest payload shown in a trace line"),
    Flag("JetStream", "switch", ("js", "jetstream"), "", "Enable JetStream"),
    Flag("JetStream", "text", ("sd", "store_dir"), "<dir>", "Folder for what JetStream stores"),
    Flag("Authorization", "text", ("user",), "<user>", "User name that clients must give"),
    Flag("Authorization", "text", ("pass",), "<password>", "Password that clients must give"),
    Flag("Authorization", "text", ("auth",), "<token>", "Token that clients must give"),
    Flag("TLS", "switch", ("tls",), "", "Enable TLS, do not ask clients for a certificate"),
    Flag("TLS", "text", ("tlscert",), "<file>", "Server certificate"),
    Flag("TLS", "text", ("tlskey",), "<file>", "Private key of the server certificate"),
    Flag("TLS", "switch", ("tlsverify",), "", "Enable TLS, verify client certificates"),
    Flag("TLS", "text", ("tlscacert",), "<file>", "Authority that client certificates are verified against"),
    Flag("Cluster", "text", ("routes",), "<url,url>", "Accepted, without effect: the server runs standalone"),
    Flag("Cluster", "text", ("cluster", "cluster_listen"), "<url>", "Accepted, without effect"),
    Flag("Cluster", "text", ("cluster_name",), "<name>", "Accepted, without effect"),
    Flag("Cluster", "text", ("cluster_advertise",), "<url>", "Accepted, without effect"),
    Flag("Cluster", "switch", ("no_advertise",), "", "Accepted, without effect"),
    Flag("Cluster", "number", ("connect_retries",), "<number>", "Accepted, without effect"),
    Flag("Profiling", "number", ("profile",), "<port>", "Accepted, without effect"),
    Flag("Common", "switch", ("h", "help"), "", "Show this message"),
    Flag("Common", "switch", ("v", "version"), "", "Show the version"),
    Flag("Common", "switch", ("help_tls",), "", "Show how TLS is configured"),
)

_FLAG_OF_NAME = {name: flag for flag in FLAGS for name in flag.names}


class ParsedFlags:
    """What the command line said: only the flags that were given, and the words after them."""

    __slots__ = ("values", "words")

    def __init__(self, values: dict[str, bool | int | str], words: tuple[str, ...] = ()) -> None:
        self.values = values
        self.words = words

    def switch(self, field: str, default: bool = False) -> bool:
        return bool(self.values.get(field, default))

    def number(self, field: str, default: int = 0) -> int:
        value = self.values.get(field, default)
        assert isinstance(value, int), field
        return value

    def text(self, field: str, default: str = "") -> str:
        value = self.values.get(field, default)
        assert isinstance(value, str), field
        return value


def parse(arguments: list[str]) -> ParsedFlags:
    """Read a command line without the program's name. Raises `FlagError`."""
    values: dict[str, bool | int | str] = {}
    position = 0
    while position < len(arguments):
        argument = arguments[position]
        if len(argument) < 2 or argument[0] != "-":
            break
        position += 1
        if argument == "--":
            break
        name, equals, value = _split(argument)
        flag = _FLAG_OF_NAME.get(name)
        if flag is None:
            raise FlagError(f"flag provided but not defined: -{name}")
        if flag.kind == "switch":
            values[flag.field] = _read_switch(name, value) if equals else True
            continue
        if not equals:
            if position == len(arguments):
                raise FlagError(f"flag needs an argument: -{name}")
            value = arguments[position]
            position += 1
        values[flag.field] = _read_number(name, value) if flag.kind == "number" else value
    return ParsedFlags(values=values, words=tuple(arguments[position:]))


def usage(program: str = "nats-server") -> str:
    """Return the text of `--help`."""
    lines = ["", f"Usage: {program} [options]"]
    section = ""
    for flag in FLAGS:
        if flag.section != section:
            section = flag.section
            lines += ["", f"{section} Options:"]
        left = f"    {', '.join(map(spelling, flag.names))} {flag.argument}".rstrip()
        if len(left) >= USAGE_COLUMN:
            lines.append(left)
            left = ""
        lines.append(f"{left:<{USAGE_COLUMN}}{flag.explanation}")
    return "\n".join([*lines, ""])


def spelling(name: str) -> str:
    """Return a flag's name as documentation writes it: one dash before short names, two before long ones."""
    return f"-{name}" if len(name) <= 2 or name == "DVV" else f"--{name}"


def _split(argument: str) -> tuple[str, str, str]:
    """Split `-name=value`; the value may be empty and may contain further equals signs."""
    stripped = argument[2:] if argument.startswith("--") else argument[1:]
    if not stripped or stripped[0] in "-=":
        raise FlagError(f"bad flag syntax: {argument}")
    return stripped.partition("=")


def _read_switch(name: str, value: str) -> bool:
    if value in TRUE_WORDS:
        return True
    if value in FALSE_WORDS:
        return False
    raise FlagError(f'invalid boolean value "{value}" for -{name}: parse error')


def _read_number(name: str, value: str) -> int:
    number = _parse_go_integer(value)
    if number is None:
        raise FlagError(f'invalid value "{value}" for flag -{name}: parse error')
    if not -(2 ** (INTEGER_BITS - 1)) <= number < 2 ** (INTEGER_BITS - 1):
        raise FlagError(f'invalid value "{value}" for flag -{name}: value out of range')
    return number


def _parse_go_integer(text: str) -> int | None:
    """Read an integer as Go does with base 0: 0x, 0o, 0b, a leading 0 for octal, underscores between digits."""
    sign, digits = ("-", text[1:]) if text[:1] == "-" else ("", text.removeprefix("+"))
    if not digits.isascii() or not digits[:1].isdigit() or not digits[-1:].isalnum():
        return None
    if digits[0] == "0" and (digits[1:2].isdigit() or digits[1:2] == "_"):
        digits = f"0o{digits[1:]}"
    try:
        return int(sign + digits, 0)
    except ValueError:
        return None
