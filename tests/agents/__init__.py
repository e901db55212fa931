"""Tests of the agent on a node."""
