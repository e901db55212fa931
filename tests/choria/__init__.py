"""Tests of Choria's formats."""
