"""The templates of signing keys: subjects that contain the name, the key or the tags of the user who logs in.

```text
orders.{{name()}}.>        {{account-name()}}        region.{{tag(region)}}.>
```

A tag may occur several times: then one subject becomes several. If a value makes a subject invalid, an allowed subject
is left out, and a denied one refuses the user. Values may contain wildcards, as in nats-server: the signer of names and
tags decides what they mean.
"""

import re
from itertools import product

import msgspec

from jetlake.server.claims.permissions import ClaimedSubjects, UserPermissions
from jetlake.server.configuration.permissions import is_subject

REFERENCE = re.compile(r"\{\{[^}]+\}\}")
TAG = re.compile(r"(tag|account-tag)\((.*)\)", re.IGNORECASE)

EXPANSIONS_MAX = 4096
"""nats-server's: subjects that one list may become, so that a user with many tags does not use up the memory."""

MISSING = " "
"""In the place of a tag that the user does not have; no subject contains it."""


class ClaimTemplateError(Exception):
    """A template that cannot be filled in for this user; the message says why."""


class TemplateValues(msgspec.Struct, frozen=True, kw_only=True):
    """What the references of a template stand for."""

    name: str
    subject: str
    account_name: str
    account_subject: str
    tags: tuple[str, ...] = ()
    account_tags: tuple[str, ...] = ()

    def of(self, reference: str) -> tuple[str, ...]:
        """Return the values of a reference, none for a tag that is missing. Raises `ClaimTemplateError`."""
        operation = reference.strip()
        simple = {
            "name()": self.name,
            "subject()": self.subject,
            "account-name()": self.account_name,
            "account-subject()": self.account_subject,
        }
        if operation.lower() in simple:
            return (simple[operation.lower()],)
        found = TAG.fullmatch(operation)
        if found is None:
            raise ClaimTemplateError(f'template operation "{operation}" is not defined')
        tags = self.tags if found[1].lower() == "tag" else self.account_tags
        start = f"{found[2].lower()}:"
        return tuple(tag.removeprefix(start) for tag in tags if tag.startswith(start))


def fill_in(template: UserPermissions, values: TemplateValues) -> UserPermissions:
    """Return what a template allows one user. Raises `ClaimTemplateError`."""
    return msgspec.structs.replace(
        template, pub=_fill_in_subjects(template.pub, values), sub=_fill_in_subjects(template.sub, values)
    )


def _fill_in_subjects(subjects: ClaimedSubjects, values: TemplateValues) -> ClaimedSubjects:
    allow = _fill_in_list(subjects.allow, values, is_denied=False)
    deny = _fill_in_list(subjects.deny, values, is_denied=True)
    if subjects.allow and not allow and ">" not in deny:
        # Nothing is left of what was allowed, which must not become everything.
        deny = (*deny, ">")
    return ClaimedSubjects(allow=allow, deny=deny)


def _fill_in_list(subjects: tuple[str, ...], values: TemplateValues, *, is_denied: bool) -> tuple[str, ...]:
    if not any(REFERENCE.search(subject) for subject in subjects):
        return subjects
    filled: list[str] = []
    for subject in subjects:
        for result in _expand(subject, values, len(filled), is_denied=is_denied):
            if is_subject(result):
                filled.append(result)
            elif is_denied:
                raise ClaimTemplateError("generated invalid subject")
    return tuple(filled)


def _expand(subject: str, values: TemplateValues, count_before: int, *, is_denied: bool) -> list[str]:
    """Return one subject for each combination of values."""
    references = REFERENCE.findall(subject)
    choices = []
    count = 1
    for reference in references:
        found = values.of(reference[2:-2])
        if not found and is_denied:
            raise ClaimTemplateError(f'generated invalid subject "{subject}": {reference} is not defined')
        choices.append(found or (MISSING,))
        count *= len(choices[-1])
        if count_before + count > EXPANSIONS_MAX:
            raise ClaimTemplateError(f"the template becomes more than {EXPANSIONS_MAX} subjects")
    results = []
    for combination in product(*choices):
        result = subject
        for reference, value in zip(references, combination, strict=True):
            result = result.replace(reference, value)
        results.append(result)
    return results
