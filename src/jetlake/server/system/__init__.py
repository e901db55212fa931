"""The system account: what a server answers about itself under `$SYS.REQ`, and what it publishes unasked.

- `registration`      the subjects that are answered, in the system account and in all others
- `account`           all of it together, for one server
- `desk`              queues what the engine delivers, for a thread of its own
- `handler`           answers requests and publishes events; loaded on the first request or subscriber
- `requests`          the topic of each request, and the body of its reply
- `replies`           the envelope of a reply, its errors, its compression
- `payloads`          the options in a request
- `filters`           which servers a request to all of them means
- `user_information`  who am I, and what may I do
- `advisories`        clients that came and went, and how many there are
- `protocols`         the parts of the engine that are needed, for type checkers

Starting fast is a feature: a server loads `account`, `desk` and `registration`, and the rest only when it is needed.
"""
