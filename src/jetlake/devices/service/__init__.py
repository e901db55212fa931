"""The gRPC services and the HTTP gateway.

- `credentials`    who calls, as the call says
- `sessions`       one connection for each user, with that user's own credentials
- `filters`        which events and devices a request asks for
- `reading`        devices, links, resources and pending commands
- `subscriptions`  events as they come, for a client that may be slow
- `grpc_server`    the gRPC services, with health and reflection
- `gateway`        the same over HTTP, in JSON
- `gateway_paths`  which path and method is which request
- `json_form`      messages as JSON
- `service`        `DeviceService`: all of it, started and stopped
"""
