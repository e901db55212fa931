"""Decides what the API of streams and consumers answers, and has the engine do it.

From the request to the answer:

- `manager`            takes requests, and answers them
- `lanes`              a queue for each account, and the threads that work them off
- `dispatch`           from a subject to its endpoint, and the checks that all share
- `calls`              one request, and the ways its body is read
- `streams`            create, update, names, list, info, delete, purge
- `forks`              a copy of a stream as it was at a sequence
- `messages`           get and delete of one message
- `account_info`       what an account uses and may use
- `archived_consumers` the consumers of an archive that is restored, checked and made in short steps
- `archives`           snapshot and restore
- `scans`              a range of a stream as a table: plans, rows, and where they lie
- `consumers`          create, names, list, info, delete, pause, unpin, reset
- `preview`            the API of the first two years, beside today's
- `replies`            the envelope of an answer
- `paging`             which part of a list an answer shows
- `stream_info`        the description of a stream in answers
- `consumer_info`      the description of a consumer in answers
- `advisories`         what is told without being asked
- `settings`           what of the server's options matters here
- `engine_failures`    what the engine cannot do, as an answer
- `protocols`          what of the engine is needed, for type checkers

The streams and consumers themselves:

- `catalog`            all streams, in memory and with the engine
- `consumer_catalog`   all consumers, in memory and with the engine
- `account_streams`    the streams of one account, as decisions about another need them
- `stream_consumers`   the consumers of one stream, as decisions about another need them
- `taken_subjects`     which subjects are taken, and by whom
- `stream_state`       what the engine tells about a stream
- `consumer_state`     what the engine tells about a consumer
- `reservations`       what the streams of all accounts may grow to together
- `pause_ends`         when consumers that pause go on
- `usages`             what the accounts store, for monitoring
- `why`                why messages move, or do not

The rules:

- `dialect`            which API a stream or a consumer was asked for in
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
- `requester`          what whoever asks may publish and subscribe to
- `subject_rights`     where a client may have the server publish for it, and what a request needs besides
- `stream_update`      which changes a stream accepts
- `stream_requests`    create and update, from the bytes to the configuration to store
- `consumer_config`    the configuration of a consumer as a value
- `consumer_context`   what a decision about a consumer needs to know of its surroundings
- `consumer_defaults`  what a consumer has that its request does not say
- `consumer_validation` which consumers are legal, by themselves and on their stream
- `consumer_options`   our own options in the metadata of a consumer
- `consumer_update`    which changes a consumer accepts
- `consumer_requests`  create and update, from the subject and the bytes to the configuration to store
- `restore_requests`   restore, from the bytes to the configuration of the stream to come
- `api_level`          the level a configuration asks of a server
"""
