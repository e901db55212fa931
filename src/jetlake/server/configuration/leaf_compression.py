"""The key `compression` of `leafnodes` and of a remote: a mode, true or false, or a map with thresholds.

```text
compression: s2_fast
compression { mode: s2_auto, rtt_thresholds: ["10ms", "50ms", "100ms"] }
```
"""

from jetlake.server.configuration.document import ConfigurationNode, kind_of
from jetlake.server.configuration.section import Section
from jetlake.server.options.leafnodes import AUTO_RTT_MS, OFF, S2_AUTO, LinkCompression
from jetlake.shared.durations import DURATION_EXAMPLES, go_duration_ns

NANOSECONDS_PER_MILLISECOND = 1_000_000

MODES = {
    **dict.fromkeys(("on", "enabled", "true", "auto", S2_AUTO), S2_AUTO),
    # A hub that says it cannot compress and one that does not want to are treated alike.
    **dict.fromkeys(("disabled", OFF, "false", "not supported", "not_supported"), OFF),
    "accept": "accept",
    **dict.fromkeys(("fast", "s2_fast"), "s2_fast"),
    **dict.fromkeys(("better", "s2_better"), "s2_better"),
    **dict.fromkeys(("best", "s2_best"), "s2_best"),
}
"""The words of a file, and what they mean."""

THRESHOLDS_MAX = 4
"""One for each level that `s2_auto` chooses from: not compressed, fast, better, best."""

MODES_ADVICE = "take off, accept, s2_auto, s2_fast, s2_better or s2_best"


def read_compression(section: Section) -> LinkCompression:
    """Return how a link compresses; `s2_auto` if nothing is said."""
    node = section.node("compression")
    if node is None:
        return LinkCompression()
    if isinstance(node.data, bool):
        return _of_mode(section, node, S2_AUTO if node.data else OFF, None)
    if isinstance(node.data, str):
        return _of_mode(section, node, node.data, None)
    if not isinstance(node.data, dict):
        section.error(
            node, f'field "compression" should be a boolean or a structure, got {kind_of(node.data)}; {MODES_ADVICE}'
        )
        return LinkCompression()
    inner = Section(node, section.problems)
    mode = inner.text("mode") or S2_AUTO
    thresholds_ms = _read_thresholds(inner)
    inner.finish()
    return _of_mode(section, node, mode, thresholds_ms)


def _read_thresholds(section: Section) -> list[int] | None:
    """Return the thresholds of the map; None = there are none, or one is wrong."""
    node = section.node("rtt_thresholds", "thresholds", "rtts", "rtt")
    words = section.texts("rtt_thresholds", "thresholds", "rtts", "rtt")
    if node is None or words is None:
        return None
    thresholds_ms = []
    for word in words:
        try:
            threshold_ns = go_duration_ns(word)
        except ValueError as error:
            section.error(node, f'"rtt_thresholds": {word!r} {error}')
            return None
        # The engine counts in milliseconds; less than one is more than none.
        is_given = threshold_ns > 0
        thresholds_ms.append(max(1, threshold_ns // NANOSECONDS_PER_MILLISECOND) if is_given else 0)
    return thresholds_ms


def _of_mode(section: Section, node: ConfigurationNode, word: str, thresholds_ms: list[int] | None) -> LinkCompression:
    mode = MODES.get(word.lower())
    if mode is None:
        section.error(node, f'unsupported compression mode "{word}"; {MODES_ADVICE}')
        return LinkCompression()
    if mode != S2_AUTO:
        return LinkCompression(mode=mode, rtt_ms=())
    if not thresholds_ms:
        return LinkCompression(mode=mode, rtt_ms=AUTO_RTT_MS)
    reason = _wrong_with(thresholds_ms, word)
    if reason:
        section.error(node, reason)
        return LinkCompression()
    while not thresholds_ms[-1]:
        thresholds_ms.pop()
    return LinkCompression(mode=mode, rtt_ms=tuple(thresholds_ms))


def _wrong_with(thresholds_ms: list[int], mode: str) -> str:
    """Return why these cannot be thresholds; empty = they can. 0 stands for a level that is not used."""
    used = [threshold for threshold in thresholds_ms if threshold]
    if used != sorted(used):
        return f"RTT threshold values {thresholds_ms} ms should be in ascending order"
    last_used = max((number for number, threshold in enumerate(thresholds_ms, 1) if threshold), default=0)
    if last_used > THRESHOLDS_MAX:
        return (
            f'compression mode "{mode}" should have no more than {THRESHOLDS_MAX} RTT thresholds: {thresholds_ms} ms; '
            "one for each level: uncompressed, fast, better, best"
        )
    if not used:
        return f'compression mode "{mode}" requires at least one RTT threshold; {DURATION_EXAMPLES}'
    return ""
