"""Tests of requests and the rights of their senders."""
