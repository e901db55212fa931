"""The key `permissions`: what a user may publish and subscribe to.

```text
permissions {
  publish: "orders.>"                                # a subject, a list (both: only these), or allow and deny
  subscribe: { allow: ["a.>", "b workers"], deny: "a.secret" }
  allow_responses: { max: 1, expires: "2m" }         # or true
}
```
"""

from jetlake.server.configuration.document import ConfigurationNode, kind_of
from jetlake.server.configuration.section import Problems, Section
from jetlake.server.options.users import UNLIMITED, Permissions, ResponsePermissions, SubjectPermissions

DEFAULT_RESPONSES = ResponsePermissions()


def read_permissions(section: Section, *names: str) -> Permissions | None:
    """Return the permissions under this key; None = the key is not there, or wrong."""
    inner = section.section(*names)
    if inner is None:
        return None
    publish = _read_subjects(inner, ("publish", "pub", "import"), queues=False)
    subscribe = _read_subjects(inner, ("subscribe", "sub", "export"), queues=True)
    responses = _read_responses(inner)
    inner.finish()
    if responses is not None and publish.allow is None:
        # A user with response permissions may by default only answer.
        publish = SubjectPermissions(allow=(), deny=publish.deny)
    return Permissions(publish=publish, subscribe=subscribe, responses=responses)


def _read_subjects(section: Section, names: tuple[str, ...], *, queues: bool) -> SubjectPermissions:
    node = section.node(*names)
    if node is None:
        return SubjectPermissions()
    if not isinstance(node.data, dict):
        return SubjectPermissions(allow=_read_list(section, names, queues=queues))
    inner = Section(node, section.problems)
    allow = _read_list(inner, ("allow",), queues=queues)
    deny = _read_list(inner, ("deny",), queues=queues)
    for key, entry in inner.entries():
        section.error(
            entry, f"Unknown field name \"{key}\" parsing subject permissions, only 'allow' or 'deny' are permitted"
        )
    return SubjectPermissions(allow=allow, deny=deny or ())


def _read_list(section: Section, names: tuple[str, ...], *, queues: bool) -> tuple[str, ...] | None:
    """Return the subjects under a key; None = it is not there."""
    node = section.node(*names)
    subjects = section.texts(*names)
    if node is None or subjects is None:
        return None
    if not subjects and names != ("deny",):
        # nats-server would allow everything, which the author of the file surely did not mean.
        section.error(node, f'"{names[0]}" is empty: remove it to allow everything, or deny ">" to allow nothing')
    for subject in subjects:
        reason = wrong_subject(subject, queues=queues)
        if reason:
            section.error(node, reason)
    return subjects


def wrong_subject(subject: str, *, queues: bool) -> str:
    """Return what is wrong with an entry of a permission list; empty = nothing."""
    if is_subject(subject):
        return ""
    words = subject.split()
    if not queues or len(words) != 2:
        return f'subject "{subject}" is not a valid subject'
    if not is_subject(words[0]):
        return f'subject "{words[0]}" is not a valid subject'
    if not is_subject(words[1]):
        return f'queue "{words[1]}" is not a valid queue'
    return ""


def is_subject(text: str) -> bool:
    """Tell whether this is a subject, wildcards allowed."""
    tokens = text.split(".")
    if any(not token or any(character.isspace() for character in token) for token in tokens):
        return False
    return ">" not in tokens[:-1]


def _read_responses(section: Section) -> ResponsePermissions | None:
    names = ("allow_responses", "publish_allow_responses")
    node = section.node(*names)
    if node is None:
        return None
    if isinstance(node.data, bool):
        return DEFAULT_RESPONSES if node.data else None
    if not isinstance(node.data, dict):
        section.error(node, f'"{names[0]}" must be true, false or a map, not {kind_of(node.data)}')
        return None
    return _read_response_limits(node, section.problems)


def _read_response_limits(node: ConfigurationNode, problems: Problems) -> ResponsePermissions:
    section = Section(node, problems)
    count = section.integer("max", "max_msgs", "max_messages", "max_responses")
    expires_s = section.strict_duration_s("expires", "expiration", "ttl")
    section.finish()
    return ResponsePermissions(
        # 0 means the default and negative numbers mean no limit, as in nats-server.
        count_max=DEFAULT_RESPONSES.count_max if not count else max(count, UNLIMITED),
        expires_ms=DEFAULT_RESPONSES.expires_ms if not expires_s else max(int(expires_s * 1000), UNLIMITED),
    )
