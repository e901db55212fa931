"""Tests of the device event bus.

Forty behaviours of the bus can be observed from outside. Where each is tested:

| behaviour                                                    | tests                                       |
|--------------------------------------------------------------|---------------------------------------------|
| 1-14   what each pattern of the documentation receives       | `test_consumer`: each_pattern, seeds_own    |
| 15-18  envelope, subject, ids, snappy block, versions        | `test_codec`                                |
| 19     golden vector, unknown fields and types, dead letters | `test_codec`, `test_consumer`               |
| 20     wildcards in ids                                      | `test_ids`, `test_codec`, `test_publisher`  |
| 21-22  late readers, reading from a time, restarts           | `test_consumer`                             |
| 23     the stream has no limits                              | `test_stream`                               |
| 24     message ids                                           | `test_publisher`                            |
| 25-29  gaps, snapshots, tail loss, order, new epochs         | `test_projection`, `test_session` core_mode |
| 30     events after a time, foreign devices                  | `test_session`, `test_service`              |
| 31-33  core mode, JetStream mode, streams that do not match  | `test_publisher`, `test_service`            |
| 34     the variable of the bundle                            | `tests/cli/test_device`                     |
| 35     versions of servers                                   | `test_stream`                               |
| 36     snapshots                                             | `test_session`, `test_projection`           |
| 37-38  repeated notifications, updates and confirmations     | `test_aggregate`, `test_session`            |
| 39     writers that race                                     | `test_session` concurrent_writers           |
| 40     unknown resources                                     | `test_session`                              |
"""
