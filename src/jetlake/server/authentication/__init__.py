"""Authentication: one decision per connection, made in Python and enforced in the engine.

The engine holds the connection back, passes on what the client said, and acts on the verdict. All refusals look the
same on the wire, so a client learns nothing from them.

- `authenticator`       the decision about a client
- `rules`               which user a client is that connects in one way, if any
- `presented`           what a CONNECT and a handshake show about a client
- `passwords`           the comparison of passwords, plain and bcrypt
- `certificates`        the names in a client's certificate
- `alternative_names`   those names, where the library does not read them
- `verdict`             the decision in the form the engine takes
- `gate`                carries decisions to the engine; slow ones from threads of their own
- `login_queue`         clients whose password takes long to compare, in turns by address
"""
