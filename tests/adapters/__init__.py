"""Tests of data adapters."""
