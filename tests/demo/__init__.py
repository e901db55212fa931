"""Tests of the demo: its scenes against a real server, its page, its folder."""
