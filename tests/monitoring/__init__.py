"""Tests of monitoring: bodies from recorded readings, requests as bytes, sockets, and whole servers."""
