"""One request: who sends it, what it may do, how it is read and answered, and what is reported about it.

- `calls`       one request, and the ways its body is read
- `requester`   what the sender may publish and subscribe to
- `rights`      where a client may have the server publish for it, and what else a request needs
- `answer`      the answer to a request
- `advisories`  reports that are published unasked
"""
