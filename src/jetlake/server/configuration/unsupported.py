"""Keys that nats-server knows and this server does not: each is refused with what to do instead.

The server must not start as if such a key were not there: its author relies on it. When a feature arrives, delete its
entry here.

The reasons follow `"key" is not supported`.
"""

_ALONE = "here: the server runs standalone; for this run nats-server, which the same clients speak to"

TOP_LEVEL = {
    "cluster": _ALONE,
    "gateway": _ALONE,
    "mqtt": "here: bridge MQTT to NATS with a broker's own bridge, or run nats-server",
    "proxies": "yet: let clients connect directly",
    "default_js_domain": "yet: it concerns leaf nodes only; remove it",
}

JETSTREAM = {
    "tpm": "yet: give the key by `key`, from a variable of the environment",
}

TLS = {
    "cert_store": "here: it is for Windows; name files with cert_file and key_file",
    "cert_match_by": "here: it is for Windows; name files with cert_file and key_file",
    "cert_match": "here: it is for Windows; name files with cert_file and key_file",
    "cert_match_skip_invalid": "here: it is for Windows; name files with cert_file and key_file",
    "ca_certs_match": "here: it is for Windows; name a file with ca_file",
    "verify_cert_and_check_known_urls": "in this context: it is for routes and gateways; use verify",
}
