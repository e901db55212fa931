# Resources of Terraform's provider jetstream are read as they are; durations are seconds.
resource "jetstream_stream" "LOGS" {
  name     = "LOGS"
  subjects = ["logs.>"]
  storage  = "file"
  max_age  = 60 * 60 * 24 * 365
}

resource "jetstream_consumer" "LOGS_TAIL" {
  stream_id    = jetstream_stream.LOGS.id
  durable_name = "TAIL"
  deliver_all  = true
}
