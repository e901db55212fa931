"""One request: who sends it, what it may do, how it is read and answered, and what others are told about it.

- `calls`       one request, and the ways its body is read
- `requester`   what whoever asks may publish and subscribe to
- `rights`      where a client may have the server publish for it, and what a request needs besides
- `answer`      what a request is answered with
- `advisories`  what is told without being asked
"""
