"""The system account: what a server answers about itself under `$SYS.REQ`, and what it tells without being asked.

- `registration`      the subjects that are answered, in the system account and in all others
- `account`           all of it together, for one server
- `desk`              takes what the engine hands over, and gives it to a thread of its own
- `handler`           answers requests and publishes events; loaded when somebody asks or listens
- `requests`          which request is about what, and the body of its reply
- `replies`           the envelope of a reply, its errors, its compression
- `payloads`          the options in a request
- `filters`           which servers a request to all of them means
- `user_information`  who am I, and what may I do
- `advisories`        clients that came and went, and how many there are
- `protocols`         what of the engine is needed, for type checkers

Starting fast is a feature: a server loads `account`, `desk` and `registration`, and the rest only when it is needed.
"""
