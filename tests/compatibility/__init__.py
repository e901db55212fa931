"""Facts of core messaging, proven of Jetlake and of the real nats-server by the same test bodies.

Layout:

- `server_process.py`: starts, watches and stops a server of either kind.
- `wire.py`: a raw client that speaks bytes and explains every surprise.
- `certificates.py`: throw-away certificates for TLS.
- `claims.py`: operators, accounts and users with signed claims (JWT); `operator_site.py`: a server that trusts them.
- `frames.py`: cuts a server's output into protocol frames.
- `fixtures.py`: the fixtures `server` (one plain server per kind) and `start_server` (one with flags of its own).
- `operations.py`: generated operation sequences for the differential test.
- `answers.py`: runs such a sequence and brings the answer into a form that can be compared.
- `test_<noun>.py`: one file per noun of the protocol.
"""
