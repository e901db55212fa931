"""Consumers as values: their configuration, the rules it obeys, their state and their description.

Everything here is decided without the engine.

- `config`            the configuration of a consumer as a value
- `options`           our own options in the metadata of a consumer
- `required_level`    the API level a consumer asks of a server
- `stream_consumers`  the consumers of one stream, as decisions about another need them
- `context`           what a decision about a consumer needs to know: its stream, the other consumers, the limits
- `defaults`          what a consumer has that its request does not say
- `validation`        which consumers are legal, by themselves and on their stream
- `update`            which changes a consumer accepts
- `requests`          create and update, from the subject and the bytes to the configuration to store
- `state`             what the engine tells about a consumer
- `info`              the description of a consumer in answers
"""
