"""Tests of names and subjects."""
