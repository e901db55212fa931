"""What a server shows of itself: nats-server's pages over HTTP, the same bodies for the system account, and `/metrics`.

`Monitor` (in `monitor`) is what a server starts; `bodies` is what its system account answers with. Both get a `Source`
and only read. Nothing here knows a password, a token or a key: `facts` is the list of all that may be shown.

- `facts`: what a server knows about itself; `readings`: `Source`, which joins it with what the engine reports.
- `claims_facts`: what may be shown of the claims of accounts and users, in operator mode.
- `sharing_facts`: what accounts show to each other and make of subjects.
- `usage`: memory and processor time of the process.
- `varz`, `connz`, `subsz`, `accountz`, `accstatz`, `jsz`, `leafz`, `healthz`: one page each, as a function from source
  and options to a struct; `clusterz`: the pages of clusters, empty; `statsz`: what only the system account asks for;
  `diagnostics`: stacks and variables; `bodies`: all of them by name.
- `metrics` and `leaf_metrics`: the figures for Prometheus; `prometheus`: its text format.
- `pages`: from a request to a response; `index`: the list of pages; `parameters`: what comes after
  the `?`; `paths`: paths, tidied.
- `monitor`: pages on a port; `http_listener`: the port; `http_connection` and `tls_connection`: one connection;
  `http_request`: one request and its response as bytes.
"""
