"""The documentation is tested: its examples run, its links lead somewhere, what is generated is up to date."""
