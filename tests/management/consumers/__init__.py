"""Tests of the rules of consumers."""
