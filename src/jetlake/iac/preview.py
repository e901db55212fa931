"""The words that consumers had in 2020, which Terraform's provider still has, as those of today.

| then                        | today                                                     |
|-----------------------------|-----------------------------------------------------------|
| `delivery_subject`          | `deliver_subject`                                         |
| `deliver_all: true` …       | `deliver_policy: all` …                                   |
| `stream_seq: 5`             | `deliver_policy: by_start_sequence`, `opt_start_seq: 5`   |
| `start_time: …`             | `deliver_policy: by_start_time`, `opt_start_time: …`      |
"""

from jetlake.iac.conversion import flag, timestamp, whole_number
from jetlake.iac.fields import word_of
from jetlake.located.nodes import Mapping, Node, refusal

_RENAMED = {
    "deliverysubject": "deliver_subject",
    "deliverygroup": "deliver_group",
    "maxdelivery": "max_deliver",
    "ratelimit": "rate_limit_bps",
    "memory": "mem_storage",
}
_STARTS = {
    "deliverall": "all",
    "deliverlast": "last",
    "delivernew": "new",
    "deliverlastpersubject": "last_per_subject",
}
_SEQUENCES = ("streamseq", "streamsequence")
_TIMES = ("starttime",)


def consumer(node: Node) -> Node:
    """Return the fields of a consumer with today's names."""
    found: Mapping = {}
    starts: list[tuple[str, Node]] = []
    for key, child in node.mapping.items():
        word = word_of(key)
        if word not in (*_STARTS, *_SEQUENCES, *_TIMES):
            found[_RENAMED.get(word, key)] = child
        elif child.value is None:
            continue
        elif word in _STARTS:
            if flag(child, key):
                starts.append((_STARTS[word], child))
        elif word in _SEQUENCES:
            # Go writes 0 and the zero time where nothing was said.
            if whole_number(child, key):
                starts.append(("by_start_sequence", child))
                found["opt_start_seq"] = child
        elif timestamp(child, key):
            starts.append(("by_start_time", child))
            found["opt_start_time"] = child
    if len(starts) > 1:
        policies = " and ".join(policy for policy, _ in starts)
        raise refusal(starts[1][1].location, f"a consumer starts in two ways, {policies}: keep one of them")
    for policy, child in starts:
        found["deliver_policy"] = Node(policy, child.location)
    return Node(found, node.location)
