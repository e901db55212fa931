"""The log: nats-server's format, levels, rotation, opening anew."""

import os
import pty
import re
import threading

import pytest

from jetlake.server.log import FileLog, ProcessLog, StreamLog, format_line, open_log
from jetlake.server.options import LogOptions

LINE = re.compile(r"\[(\d+)\] \d{4}/\d\d/\d\d \d\d:\d\d:\d\d\.\d{6} \[([A-Z]{3})\] (.*)")


def lines_of(path):
    return path.read_text().splitlines()


@pytest.mark.parametrize(
    ("level", "label"),
    [("info", "INF"), ("warning", "WRN"), ("error", "ERR"), ("fatal", "FTL"), ("debug", "DBG"), ("trace", "TRC")],
)
def test_line_has_pid_time_label_and_text(level, label):
    line = format_line(level, "Server is ready", LogOptions()).decode()

    found = LINE.fullmatch(line.removesuffix("\n"))
    assert found is not None
    assert found.groups() == (str(os.getpid()), label, "Server is ready")


def test_timestamps_can_be_left_out():
    assert format_line("info", "text", LogOptions(timestamps=False)) == f"[{os.getpid()}] [INF] text\n".encode()


def test_timestamps_can_be_in_utc(monkeypatch):
    monkeypatch.setattr("time.time_ns", lambda: 86_400_000_001_000)

    assert b" 1970/01/02 00:00:00.000001 " in format_line("info", "text", LogOptions(utc=True))


def test_line_break_in_a_text_does_not_forge_a_line():
    assert format_line("info", "a\r\nb", LogOptions(timestamps=False)).endswith(b"[INF] a\\r\\nb\n")


def test_control_characters_do_not_reach_a_terminal():
    text = "\x00\x1b[31m\x7f\x9b\u2028é\t"

    line = format_line("info", text, LogOptions(timestamps=False)).decode()

    assert line.endswith("[INF] \\x00\\x1b[31m\\x7f\\x9b\\u2028é\\t\n")


def test_debug_and_trace_are_dropped_unless_asked_for(tmp_path):
    quiet = FileLog(LogOptions(file=str(tmp_path / "quiet.log")))
    loud = FileLog(LogOptions(file=str(tmp_path / "loud.log"), debug=True, trace=True))

    for log in (quiet, loud):
        log.write("debug", "a")
        log.write("trace", "b")
        log.info("c")
        log.close()

    assert len(lines_of(tmp_path / "quiet.log")) == 1
    assert len(lines_of(tmp_path / "loud.log")) == 3


def test_labels_are_coloured_on_a_terminal_only():
    reading_end, writing_end = pty.openpty()
    StreamLog(LogOptions(timestamps=False), writing_end).warning("careful")
    shown = os.read(reading_end, 1000)
    os.close(writing_end)
    os.close(reading_end)
    pipe_read, pipe_write = os.pipe()
    StreamLog(LogOptions(timestamps=False), pipe_write).warning("careful")
    piped = os.read(pipe_read, 1000)
    os.close(pipe_read)
    os.close(pipe_write)

    assert b"[\x1b[0;93mWRN\x1b[0m] careful" in shown
    assert b"[WRN] careful" in piped


def test_closed_output_loses_lines_and_nothing_else():
    reading_end, writing_end = os.pipe()
    os.close(reading_end)

    StreamLog(LogOptions(), writing_end).info("nobody reads this")

    os.close(writing_end)


def test_file_is_appended_to(tmp_path):
    path = tmp_path / "server.log"
    path.write_text("before\n")

    log = open_log(LogOptions(file=str(path)))
    log.info("after")
    log.close()

    assert [line[-6:] for line in lines_of(path)] == ["before", " after"]


def test_file_in_a_missing_folder_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        open_log(LogOptions(file=str(tmp_path / "missing" / "server.log")))


def test_file_is_opened_anew_after_it_was_moved(tmp_path):
    path = tmp_path / "server.log"
    log = FileLog(LogOptions(file=str(path)))
    log.info("first")
    path.rename(tmp_path / "moved.log")

    log.info("still in the moved file")
    assert log.reopen()
    log.info("second")
    log.close()

    assert len(lines_of(tmp_path / "moved.log")) == 2
    assert len(lines_of(path)) == 1


def test_stderr_has_no_file_to_open_anew():
    assert not StreamLog(LogOptions()).reopen()


def test_file_is_rotated_after_the_line_that_made_it_too_large(tmp_path):
    path = tmp_path / "server.log"
    log = FileLog(LogOptions(file=str(path), size_limit_bytes=400))

    for number in range(30):
        log.info(f"line {number}")
    log.close()

    backups = sorted(tmp_path.glob("server.log.*"))
    assert len(backups) > 1
    assert all(re.fullmatch(r"server\.log\.\d{4}(\.\d\d){5}\.\d{9}", backup.name) for backup in backups)
    texts = [LINE.fullmatch(line).group(3) for file in [*backups, path] for line in lines_of(file)]
    assert [text for text in texts if text.startswith("line")] == [f"line {number}" for number in range(30)]
    assert f'Rotated log, backup saved as "{backups[0]}"' in texts


def test_failing_rotation_is_reported_and_not_tried_at_every_line(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    path = folder / "server.log"
    log = FileLog(LogOptions(file=str(path), size_limit_bytes=1000))
    path.rename(tmp_path / "elsewhere.log")

    for number in range(40):
        log.info(f"a rather long line that soon fills the file, number {number}")
    log.close()

    reports = [line for line in lines_of(tmp_path / "elsewhere.log") if "Unable to rotate" in line]
    assert 1 <= len(reports) <= 4


def test_lines_of_several_threads_do_not_mix(tmp_path):
    path = tmp_path / "server.log"
    log = FileLog(LogOptions(file=str(path), size_limit_bytes=2000))

    def write_many(name):
        for number in range(100):
            log.info(f"{name} {number} " + "x" * 50)

    threads = [threading.Thread(target=write_many, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    log.close()

    texts = [LINE.fullmatch(line).group(3) for file in tmp_path.glob("server.log*") for line in lines_of(file)]
    assert len([text for text in texts if text.endswith("x" * 50)]) == 400


@pytest.mark.parametrize(("files_max", "kept"), [(0, 6), (1, 1), (2, 2), (4, 4), (100, 6)])
def test_oldest_files_are_removed(tmp_path, files_max, kept):
    path = tmp_path / "server.log"
    (tmp_path / "server.log.notes").write_text("not ours")
    log = FileLog(LogOptions(file=str(path), size_limit_bytes=1, files_max=files_max))

    for number in range(5):
        log.info(f"line {number}")
    log.close()

    files = sorted(name for name in os.listdir(tmp_path) if name != "server.log.notes")
    assert len(files) == kept
    assert "server.log" in files
    assert (tmp_path / "server.log.notes").exists()


def test_log_goes_on_in_another_file_and_by_other_levels(tmp_path):
    one, other = tmp_path / "one.log", tmp_path / "other.log"
    log = ProcessLog(LogOptions(file=str(one)))
    log.info("first")
    log.write("debug", "dropped")

    log.replace(LogOptions(file=str(other), debug=True))
    log.write("debug", "second")
    log.close()

    assert [line.rpartition("] ")[2] for line in lines_of(one)] == ["first"]
    assert [line.rpartition("] ")[2] for line in lines_of(other)] == ["second"]


def test_log_stays_as_it_was_when_the_other_file_cannot_be_opened(tmp_path):
    log = ProcessLog(LogOptions(file=str(tmp_path / "one.log")))

    with pytest.raises(FileNotFoundError):
        log.replace(LogOptions(file=str(tmp_path / "missing" / "other.log")))
    log.info("still here")
    log.close()

    assert len(lines_of(tmp_path / "one.log")) == 1
