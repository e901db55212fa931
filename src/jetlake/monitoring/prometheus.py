"""Prometheus' text format, version 0.0.4: families of samples in, text out.

```text
# HELP jetlake_connections Clients that are connected.
# TYPE jetlake_connections gauge
jetlake_connections 3
```

Invariant: `render` writes each family once, with all its samples together, as the format demands; a name or label that
would break the format is a bug of ours and an assertion.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import msgspec

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Kind = Literal["counter", "gauge", "histogram"]


class Sample(msgspec.Struct, frozen=True):
    """One number. `suffix` is `_bucket`, `_sum` or `_count` in a histogram, else empty."""

    value: float
    labels: Mapping[str, str] = {}
    suffix: str = ""


class MetricFamily(msgspec.Struct, frozen=True):
    """Samples of one name."""

    name: str
    kind: Kind
    help: str
    samples: Sequence[Sample]


def single(name: str, kind: Kind, text: str, value: float) -> MetricFamily:
    """Return a family of one sample."""
    return MetricFamily(name, kind, text, [Sample(value)])


def histogram(
    name: str, text: str, buckets: Iterable[tuple[float, int]], total: float, labels: Mapping[str, str] | None = None
) -> MetricFamily:
    """Return a histogram. `buckets` are upper bounds and counts of their own, ascending, the last bound infinite."""
    labels = labels or {}
    samples = []
    count, bound = 0, -math.inf
    for upper, own_count in buckets:
        assert upper > bound, f"{name}: bounds must ascend"
        bound = upper
        count += own_count
        samples.append(Sample(count, {**labels, "le": _number(upper)}, "_bucket"))
    assert bound == math.inf, f"{name}: the last bound must be infinite"
    samples += [Sample(total, labels, "_sum"), Sample(count, labels, "_count")]
    return MetricFamily(name, "histogram", text, samples)


def render(families: Iterable[MetricFamily]) -> str:
    """Return the text."""
    lines = []
    written: set[str] = set()
    for family in families:
        assert _is_name(family.name), family.name
        assert family.name not in written, f"{family.name} comes twice"
        written.add(family.name)
        lines.append(f"# HELP {family.name} {_escaped(family.help)}")
        lines.append(f"# TYPE {family.name} {family.kind}")
        lines += [_line(family.name, sample) for sample in family.samples]
    return "\n".join([*lines, ""])


def _line(name: str, sample: Sample) -> str:
    labels = ""
    if sample.labels:
        assert all(map(_is_name, sample.labels)), sample.labels
        pairs = (f'{label}="{_escaped(text, quotes=True)}"' for label, text in sample.labels.items())
        labels = f"{{{','.join(pairs)}}}"
    return f"{name}{sample.suffix}{labels} {_number(sample.value)}"


def _number(value: float) -> str:
    if isinstance(value, float) and math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return str(value)


def _escaped(text: str, *, quotes: bool = False) -> str:
    text = text.replace("\\", "\\\\").replace("\n", "\\n")
    return text.replace('"', '\\"') if quotes else text


def _is_name(name: str) -> bool:
    return name.isascii() and name.replace("_", "a").isalnum() and not name[0].isdigit()
