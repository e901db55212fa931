"""The block `tls`."""

import pytest

from jetlake.errors import ConfigurationError
from jetlake.server.configuration import unsupported
from jetlake.server.configuration.load import load_text
from jetlake.server.options import TlsOptions

FILES = "cert_file: c.pem, key_file: k.pem"
FINGERPRINT = "ab" * 32


def tls_of(text):
    return load_text(f"tls {{ {FILES}, {text} }}").options.tls


def mistakes_of(text):
    with pytest.raises(ConfigurationError) as caught:
        load_text(text)
    return [line.partition(": ")[2] for line in str(caught.value).splitlines()]


def test_files_and_verification():
    assert load_text(f"tls {{ {FILES} }}").options.tls == TlsOptions(certificate_file="c.pem", key_file="k.pem")
    assert tls_of("ca_file: a.pem, verify: true").verify_clients
    mapped = tls_of("ca_file: a.pem, verify_and_map: true")
    assert (mapped.verify_clients, mapped.map_users) == (True, True)
    assert load_text(f"tls {{ {FILES}, verify_and_map: true }}").options.access.map_certificates


def test_one_pair_of_certs_is_the_same_as_the_files():
    tls = load_text("tls { certs: [ {cert_file: c.pem, key_file: k.pem} ] }").options.tls

    assert tls == TlsOptions(certificate_file="c.pem", key_file="k.pem")


def test_several_pairs_of_certs_keep_their_order():
    tls = load_text(
        "tls { certs: [ {cert_file: c.pem, key_file: k.pem}, {cert_file: d.pem, key_file: l.pem} ] }"
    ).options.tls

    assert (tls.certificate_file, tls.key_file, tls.further_files) == ("c.pem", "k.pem", (("d.pem", "l.pem"),))


def test_curves_that_are_not_on_offer_are_passed_over():
    assert tls_of("curve_preferences: [CurveP521, CurveP384, X25519]").curves == ("CurveP384", "X25519")


@pytest.mark.parametrize(("text", "limit"), [("0", 0), ("-1", 0), ("25", 25)])
def test_rate_of_handshakes(text, limit):
    assert tls_of(f"connection_rate_limit: {text}").handshakes_per_second_max == limit


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [("true", 0), ("false", None), ("'on'", 0), ("auto", 50), ("300ms", 300), ("'1s'", 1000), ("off", None)],
)
def test_handshake_first(text, milliseconds):
    assert tls_of(f"handshake_first: {text}").handshake_first_ms == milliseconds


def test_rules_of_the_handshake():
    tls = tls_of(
        f"timeout: 0.5, min_version: '1.3', pinned_certs: ['{FINGERPRINT.upper()}'], "
        "cipher_suites: [TLS_AES_128_GCM_SHA256, TLS_RSA_WITH_AES_128_CBC_SHA]"
    )

    assert tls.timeout_s == 0.5
    assert tls.min_version == "1.3"
    assert tls.pinned_certificates == (FINGERPRINT,)
    # Older suites of nats-server are passed over as long as one of ours is named.
    assert tls.cipher_suites == ("TLS_AES_128_GCM_SHA256",)
    assert load_text(f"allow_non_tls: true\ntls {{ {FILES} }}").options.tls.allow_plain


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("tls { cert_file: c }", "missing 'key_file' in TLS configuration"),
        ("tls { key_file: c }", "missing 'cert_file' in TLS configuration"),
        (f"tls {{ {FILES}, verify: 'yes' }}", '"verify" must be true or false, not text'),
        (f"tls {{ {FILES}, foo: 1 }}", 'error parsing tls config, unknown field "foo"'),
        (f"tls {{ {FILES}, min_version: '1.1' }}", '"min_version" must be "1.2" or "1.3"'),
        (f"tls {{ {FILES}, cipher_suites: [ROT13] }}", "unrecognized cipher ROT13"),
        (f"tls {{ {FILES}, cipher_suites: [TLS_RSA_WITH_RC4_128_SHA] }}", '"cipher_suites" names none that'),
        (f"tls {{ {FILES}, pinned_certs: [abc] }}", "error parsing tls config, 'pinned_certs' key abc does not"),
        (f"tls {{ {FILES}, handshake_first: soon }}", "\"handshake_first\": 'soon' is not a duration"),
        (f"tls {{ {FILES}, handshake_first: 5 }}", '"handshake_first" must be true, false, auto or a duration'),
        (f"tls {{ {FILES}, certs: [] }}", "cannot combine 'cert_file' option with 'certs' option"),
        ("tls { certs: [ {cert_file: c.pem, key_file: k.pem}, {cert_file: d.pem} ] }", "missing 'key_file' in TLS"),
        (f"tls {{ {FILES}, curve_preferences: [CurveP521] }}", '"curve_preferences" names none that'),
        (f"tls {{ {FILES}, curve_preferences: [bogus] }}", "unrecognized curve preference bogus"),
        (f"tls {{ {FILES}, connection_rate_limit: often }}", '"connection_rate_limit" must be'),
        (f"tls {{ {FILES}, ocsp_peer: true }}", '"ocsp_peer" is not supported yet'),
    ],
)
def test_what_cannot_work_is_refused(text, mistake):
    assert mistakes_of(text)[0].startswith(mistake)


@pytest.mark.parametrize("key", sorted(unsupported.TLS))
def test_key_that_is_not_supported_is_one_line(key):
    (line,) = mistakes_of(f"tls {{ {FILES}, {key}: x }}")

    assert line.startswith(f'"{key}" is not supported ')


def test_file_that_is_missing_is_named_when_the_engine_needs_it(tmp_path):
    tls = TlsOptions(certificate_file=str(tmp_path / "c.pem"), key_file="k.pem")

    with pytest.raises(ConfigurationError, match=r"TLS certificate cannot be read: open .*c\.pem: no such file"):
        tls.for_engine()


def test_content_crosses_and_the_key_is_not_shown(tmp_path):
    (tmp_path / "c.pem").write_text("certificate")
    (tmp_path / "k.pem").write_text("hidden")
    options = TlsOptions(certificate_file=str(tmp_path / "c.pem"), key_file=str(tmp_path / "k.pem"), timeout_s=1.5)

    engine = options.for_engine()

    assert (engine.certificate_pem, engine.key_pem, engine.ca_pem, engine.timeout_ms) == (
        "certificate",
        "hidden",
        None,
        1500,
    )
    assert "hidden" not in repr(engine)
