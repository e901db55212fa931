"""Tests of what is decided before the engine is asked, with the twins that compare it with nats-server."""
