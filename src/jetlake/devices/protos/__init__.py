"""The messages of the bus and of the gRPC API: `.proto` files, and what protoc makes of them.

- `envelope_pb2`     the envelope of every event
- `events_2021_pb2`  the sixteen events as the bus carried them in July 2021
- `events_2025_pb2`  the same events as they are today
- `api_pb2`          requests and answers of the gRPC services
- `regenerate`       runs protoc, `make protos`

The modules whose names end in `_pb2` are generated. Edit the `.proto` files, then run `make protos`.
"""
