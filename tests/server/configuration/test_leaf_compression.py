"""The key `compression` of `leafnodes`: modes, switches and thresholds, as nats-server takes them."""

import pytest

from jetlake.errors import ConfigurationError
from jetlake.server.configuration.load import load_text
from jetlake.server.options.leafnodes import AUTO_RTT_MS, LinkCompression


def compression_of(value):
    return load_text(f"leafnodes {{ port: 1, compression: {value} }}").options.leaf.listener.compression


@pytest.mark.parametrize(
    ("value", "mode"),
    [
        *[(word, "s2_auto") for word in ("true", "on", "enabled", "auto", "S2_Auto", "{mode: auto}", "{}")],
        *[(word, "off") for word in ("false", "off", "disabled", '"not supported"')],
        ("accept", "accept"),
        *[(word, "s2_fast") for word in ("fast", "s2_fast")],
        *[(word, "s2_better") for word in ("better", "s2_better")],
        *[(word, "s2_best") for word in ("best", "{mode: s2_best}")],
    ],
)
def test_mode(value, mode):
    assert compression_of(value) == LinkCompression(mode=mode, rtt_ms=AUTO_RTT_MS if mode == "s2_auto" else ())


@pytest.mark.parametrize(
    ("thresholds", "rtt_ms"),
    [
        ('["10ms", "20ms"]', (10, 20)),
        ('["0s", "20ms", "0s", "40ms"]', (0, 20, 0, 40)),
        ('["10ms", "0s", "-1s"]', (10,)),
        ('["100us"]', (1,)),
        ("[]", AUTO_RTT_MS),
    ],
)
def test_thresholds(thresholds, rtt_ms):
    for name in ("rtt_thresholds", "thresholds", "rtts", "rtt"):
        assert compression_of(f"{{ mode: s2_auto, {name}: {thresholds} }}").rtt_ms == rtt_ms


@pytest.mark.parametrize(
    ("value", "mistake"),
    [
        ("zip", 'unsupported compression mode "zip"; take off, accept, s2_auto'),
        ("s2_uncompressed", 'unsupported compression mode "s2_uncompressed"'),
        ("3", 'field "compression" should be a boolean or a structure, got an integer'),
        ("{ mode: auto, nonsense: 1 }", 'unknown field "nonsense"'),
        ('{ rtt: ["20ms", "10ms"] }', r"RTT threshold values \[20, 10\] ms should be in ascending order"),
        ('{ rtt: ["0s"] }', 'compression mode "s2_auto" requires at least one RTT threshold'),
        ('{ rtt: ["1ms", "2ms", "3ms", "4ms", "5ms"] }', "should have no more than 4 RTT thresholds"),
        ('{ rtt: ["x"] }', "'x' is not a duration"),
    ],
)
def test_mistakes_are_named(value, mistake):
    with pytest.raises(ConfigurationError, match=mistake):
        compression_of(value)
