"""Auth callout: a service decides about clients, over the server's own subjects.

The server publishes a signed request in the account of the service and holds the client back; the service answers with
the claims of a user. Nobody waits for anybody: requests and answers are handled by threads of their own.

- `delegation`         the decision to let a service decide about a client, and what the service gets
- `configured`         whom a service decides about by a configuration file, and as whom it may let them in
- `authorization_request`  the request, as signed claims
- `certificate_chain`  the certificates of a client up to the authority that vouches for it
- `authorization_answer`   the answer, opened and checked
- `identity`           the keys the server signs and decrypts with
- `admitted`           what is kept of the answer for as long as the client is in
- `callout`            the requests under way

In operator mode `jetlake.server.claims.delegated` has the part of `configured`.
"""
