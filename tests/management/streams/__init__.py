"""Tests of the rules of streams."""
