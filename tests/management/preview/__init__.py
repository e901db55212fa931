"""The API of the first two years, against a whole server."""
