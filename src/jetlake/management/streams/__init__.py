"""Streams as values: their configuration, the rules it obeys, their state and their description.

Everything here is decided without the engine.

- `config`           the configuration of a stream as a value
- `stream`           one stream as it is kept
- `dialect`          which API a stream or a consumer was asked for in
- `required_level`   the API level a stream asks of a server
- `account_streams`  the streams of one account, as decisions about another need them
- `context`          what a decision about a stream needs to know: the other streams, and the limits
- `validation`       defaults, and which configurations are legal by themselves
- `sources`          which mirrors and sources are legal
- `subjects`         which subjects, transforms and republishing are legal
- `update`           which changes a stream accepts
- `requests`         create and update, from the bytes to the configuration to store
- `state`            what the engine tells about a stream
- `info`             the description of a stream in answers
"""
