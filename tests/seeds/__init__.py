"""The documents Jetlake grew out of, with every command they print run as printed.

- `transcript`   from a document to its commands and what they print
- `masks`        what of that depends on time, place and chance, and where a document is wrong
- `runner`       the commands, run by a shell that has our executables first on its PATH
- `documents/`   the documents
"""
