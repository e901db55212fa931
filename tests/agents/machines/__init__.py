"""Tests of autonomous agents."""
