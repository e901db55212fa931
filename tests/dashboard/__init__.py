"""Tests of the dashboard: every page and action in a browser, against both servers."""
