"""The API as it was in JetStream's first two years, beside today's: message sets of 2019 and streams of 2020.

Nothing is decided here: a request becomes one of today's, and its answer one of then.

- `dispatch`      from a subject to its endpoint, and the checks that all share
- `subjects`      the subjects of both dialects
- `answers`       `+OK`, `-ERR`, and JSON as it was indented
- `account`       `$JS.ENABLED` and `$JS.INFO`, which both dialects have
- `streams`       the streams of 2020, and their messages
- `consumers`     the consumers of 2020
- `message_sets`  the message sets of 2019
- `observables`   the observables of 2019
- `stream_words`  the configuration of a stream in the words of each dialect
- `consumer_words` the same of a consumer
- `calls`         requests of the old dialects: their bodies read, and made into requests of today's
- `templates`     templates of 2020, and the streams that are made of them
- `template_file` where templates are on disk
"""
