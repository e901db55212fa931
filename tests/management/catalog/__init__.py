"""Tests of the catalog of streams and consumers."""
