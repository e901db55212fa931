"""The wire format of the API: what a request and an answer look like as bytes. Knows no stream and no consumer.

- `json_syntax`   where the values of a JSON text are, and what is wrong with it
- `json_types`    the types of a request, each with how it is read and written
- `json_dialect`  a request from its bytes, an answer to its bytes
- `times`         times as they stand in requests
- `error_codes`   every error of the API, as one closed table
- `replies`       the envelope of an answer
- `paging`        which part of a list an answer shows
- `api_level`     the levels of the API, and how they stand in metadata
"""
