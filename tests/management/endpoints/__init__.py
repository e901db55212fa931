"""Tests of what answers requests."""
