"""The device event bus: aggregates that publish the events of devices into a stream, and everything that reads them.

The stream is the event store. A command becomes an event by being stored in the stream, so nothing can be stored that
is not published.

The bus:

- `protos`       the messages, in both generations, and the requests of the gRPC API
- `ids`          resource ids, and what may be a device id or an href
- `subjects`     the subject of every event, and the patterns consumers use
- `generations`  which message belongs to which event type, in 2021 and in 2025
- `codec`        events to bytes and back
- `content`      what a resource holds: CBOR, JSON, text
- `settings`     `clients.eventBus.nats.jetstream` and the other keys of a configuration file
- `stream`       the stream of events: made, or checked
- `publisher`    events to a server, in core mode and in JetStream mode
- `bulk`         many events at once, every acknowledgement checked
- `consumer`     events from a server, by pattern
- `dead_letters` what could not be read
- `failures`     what a failure of the server means to the one who sent a command

Events as columns, for Spark:

- `columns`      a batch of events as Arrow columns
- `event_rows`   the same for one event, the plain way
- `event_plans`  which fields are read, and their numbers
- `event_scan`   where each field of each event of a batch is
- `blocks`       snappy blocks of a batch
- `wire`         protobuf messages of a batch

The aggregates:

- `aggregate`    decisions: commands in, events out, no input or output
- `store`        where the events of an aggregate are: the stream, or memory in core mode
- `session`      everything one user may do
- `confirmation` waiting for the device's answer to a command

Reading:

- `inventory`    which devices there are, by the subjects of the stream
- `projection`   state rebuilt from snapshot and events, with gaps detected
- `twin`         what is known of each device: links, resources, online or offline, pending commands
- `live_twin`    a twin that follows a stream

Serving:

- `service`      the gRPC services and the HTTP gateway
- `client`       the Python client of the gRPC services
- `simulator`    devices that are not there
"""
