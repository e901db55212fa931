"""Tests of snapshot and restore."""
