"""Decides what the API of streams answers, before the engine is asked.

- `error_codes`        every error of the API, as one closed table
- `json_syntax`        where the values of a JSON text are, and what is wrong with it
- `json_types`         the types of a request, each with how it is read and written
- `json_dialect`       a request from its bytes, an answer to its bytes
- `times`              moments as they stand in requests
- `names`              names of streams and consumers, subjects, and the short hash
- `subject_index`      overlaps among many subjects
- `subject_transform`  what a transform means, and which ones are legal
- `stream_config`      the configuration of a stream as a value
- `stream_context`     what a decision about a stream needs to know of its surroundings
- `stream_validation`  defaults, and which configurations are legal by themselves
- `stream_sources`     which mirrors and sources are legal
- `stream_subjects`    which subjects, transforms and republishing are legal
- `stream_update`      which changes a stream accepts
- `stream_requests`    create and update, from the bytes to the configuration to store
- `api_level`          the level a configuration asks of a server
"""
