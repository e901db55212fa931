"""`TakenSubjects`: the subjects of all streams of an account, and which of them a subject meets.

The subjects form a tree of tokens that lasts as long as the streams do, so that a new stream among ten thousand costs
a walk down a few branches and not ten thousand comparisons. What the walk finds is compared once more: nats-server
takes a token that only begins with a wildcard for one now and then, and `names.collide` knows when.

Invariant: `owners_meeting` returns exactly the owners of the subjects that `collide` with the one asked about. Taking
subjects and giving them back leaves the tree as it was. One thread changes the tree; others may look meanwhile, and
find what was there all the time.
"""

from collections.abc import Iterator

from jetlake.management.subjects.names import ALL_THE_REST, ANY_ONE, collide

STEPS_MAX = 500_000
"""Of one look at many subjects; less than a second of walking."""


class LookupLimitError(Exception):
    """Is raised when subjects branch so much that looking for all of them would stop the server."""


class _Node:
    __slots__ = ("children", "looks_wild", "owners", "subject")

    def __init__(self) -> None:
        self.children: dict[str, _Node] = {}
        # The keys among the children that begin with a wildcard but are not one.
        self.looks_wild: set[str] = set()
        # Whose subject ends here; nearly always one stream or none.
        self.owners: tuple[str, ...] = ()
        # The subject that ends here, if it has owners.
        self.subject = ""


class TakenSubjects:
    """Subjects with their owners. All of them must be subjects; what is asked about may be any text."""

    def __init__(self) -> None:
        self._root = _Node()

    def add(self, subjects: tuple[str, ...], owner: str) -> None:
        """Note that these subjects are the owner's."""
        for subject in subjects:
            node = self._root
            for token in subject.split("."):
                if _looks_wild(token):
                    node.looks_wild.add(token)
                child = node.children.get(token)
                if child is None:
                    child = node.children[token] = _Node()
                node = child
            node.owners = (*node.owners, owner)
            node.subject = subject

    def remove(self, subjects: tuple[str, ...], owner: str) -> None:
        """Forget that these subjects are the owner's, which they are."""
        for subject in subjects:
            path = [self._root]
            tokens = subject.split(".")
            for token in tokens:
                path.append(path[-1].children[token])
            owners = list(path[-1].owners)
            owners.remove(owner)
            path[-1].owners = tuple(owners)
            for parent, token in zip(reversed(path[:-1]), reversed(tokens), strict=True):
                child = parent.children[token]
                if child.owners or child.children:
                    break
                del parent.children[token]
                parent.looks_wild.discard(token)

    def owners_meeting(self, subject: str) -> set[str]:
        """Return who has a subject that overlaps with this one."""
        owners: set[str] = set()
        for node in self._walk(subject):
            if not owners.issuperset(node.owners) and collide(subject, node.subject):
                owners.update(node.owners)
        return owners

    def is_met_by_others(self, subjects: tuple[str, ...], owner: str) -> bool:
        """Return whether one of these subjects overlaps with one of another owner. Raises `LookupLimitError`."""
        steps = 0
        for subject in subjects:
            for node in self._walk(subject):
                steps += 1
                if any(other != owner for other in node.owners) and collide(subject, node.subject):
                    return True
                if steps > STEPS_MAX:
                    raise LookupLimitError
        return False

    def _walk(self, subject: str) -> Iterator[_Node]:
        """Yield every node on the way, those where subjects end that may overlap with this one among them."""
        tokens = subject.split(".")
        waiting = [(self._root, 0)]
        while waiting:
            node, depth = waiting.pop()
            yield node
            rest = node.children.get(ALL_THE_REST)
            if rest is not None:
                yield rest
            if depth < len(tokens):
                # Below a `>` everything is walked at the same depth.
                next_depth = depth if tokens[depth] == ALL_THE_REST else depth + 1
                children = map(node.children.get, _keys_to_follow(node, tokens[depth]))
                waiting += [(child, next_depth) for child in children if child is not None]


def _keys_to_follow(node: _Node, token: str) -> list[str]:
    # Of copies, because another thread may add some meanwhile.
    if token[:1] in (ANY_ONE, ALL_THE_REST):
        return [key for key in tuple(node.children) if key != ALL_THE_REST]
    keys = [key for key in (token, ANY_ONE) if key in node.children]
    return keys + [key for key in tuple(node.looks_wild) if key != token]


def _looks_wild(token: str) -> bool:
    return token[:1] in (ANY_ONE, ALL_THE_REST) and token not in (ANY_ONE, ALL_THE_REST)
