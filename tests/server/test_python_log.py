"""The log of a server inside a program."""

import logging

from jetlake.server.python_log import LOGGER_NAME, TRACE, PythonLog


def test_lines_reach_the_logger_with_their_level(caplog):
    caplog.set_level(TRACE, LOGGER_NAME)
    log = PythonLog(debug=True, trace=True)

    log.info("100% ready")
    log.error("broken")
    log.write("trace", "PING")

    assert [(record.levelno, record.getMessage()) for record in caplog.records] == [
        (logging.INFO, "100% ready"),
        (logging.ERROR, "broken"),
        (TRACE, "PING"),
    ]


def test_there_is_no_file_to_open_anew():
    log = PythonLog()

    assert not log.reopen()
    log.close()
