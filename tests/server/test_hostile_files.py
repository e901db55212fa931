"""Links and other things that somebody has put into the store folder: nothing outside is written or removed."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path

import nats
import pytest

import jetlake


@pytest.fixture
def configuration(tmp_path: Path) -> Path:
    file = tmp_path / "server.conf"
    file.write_text(f'port: -1\njetstream {{ store_dir: "{tmp_path}/store" }}\n')
    return file


def ask(server: jetlake.Server, subject: str, body: object = None) -> dict:
    async def work() -> dict:
        connection = await nats.connect(server.url)
        payload = b"" if body is None else json.dumps(body).encode()
        answer = await connection.request(subject, payload, timeout=60)
        await connection.close()
        return json.loads(answer.data)

    return asyncio.run(work())


def make_stream(configuration: Path, name: str) -> Path:
    """Make a stream, stop its server, and return the folder of the stream."""
    with jetlake.Server(config=configuration) as server:
        assert "error" not in ask(server, f"$JS.API.STREAM.CREATE.{name}", {"name": name, "subjects": [name.lower()]})
        assert ask(server, name.lower(), 1)["seq"] == 1
    return configuration.parent / "store" / "jetstream" / "$G" / "streams" / name


def precious(folder: Path) -> Path:
    """Make a folder that is none of the server's, with files in folders, and return it."""
    (folder / "deep" / "deeper").mkdir(parents=True)
    for place in (folder, folder / "deep", folder / "deep" / "deeper"):
        (place / "precious").write_text("precious")
    return folder


def files_in(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("place", ["stream", "streams", "account"])
def test_links_are_not_followed_when_the_store_is_opened(configuration, tmp_path, caplog, place):
    stream = make_stream(configuration, "S")
    outside = precious(tmp_path / "outside")
    links = {"stream": stream.parent / "LINK", "streams": stream.parents[2] / "X", "account": stream.parents[2] / "Y"}
    if place == "streams":
        links["streams"].mkdir()
        links["streams"] /= "streams"
        (outside / "streams").mkdir()
    links[place].symlink_to(outside)
    before = files_in(outside)

    with jetlake.Server(config=configuration) as server:
        assert ask(server, "$JS.API.STREAM.INFO.S")["state"]["messages"] == 1

    assert files_in(outside) == before
    assert links[place].is_symlink()
    assert "symbolic links are not followed" in caplog.text


def test_links_that_lead_nowhere_and_plain_files_do_not_hinder_the_start(configuration, tmp_path, caplog):
    stream = make_stream(configuration, "S")
    (stream.parent / "NOWHERE").symlink_to(tmp_path / "missing")
    (stream.parent / "FILE").write_text("x")
    (stream.parents[2] / "FILE").write_text("x")

    with jetlake.Server(config=configuration) as server:
        assert ask(server, "$JS.API.STREAM.INFO.S")["state"]["messages"] == 1

    assert (stream.parent / "FILE").exists()
    assert "FILE: left alone, it is not a folder" in caplog.text


def test_a_stream_is_removed_without_what_links_in_it_lead_to(configuration, tmp_path):
    stream = make_stream(configuration, "S")
    outside = precious(tmp_path / "outside")
    (stream / "link").symlink_to(outside)
    (stream / "messages" / "link").symlink_to(outside)

    with jetlake.Server(config=configuration) as server:
        assert ask(server, "$JS.API.STREAM.DELETE.S")["success"]
    with jetlake.Server(config=configuration) as server:
        assert ask(server, "$JS.API.STREAM.NAMES")["total"] == 0

    assert len(files_in(outside)) == 3
    assert not stream.exists()


def test_a_stream_that_was_moved_away_is_left_alone(configuration, tmp_path):
    stream = make_stream(configuration, "S")
    shutil.move(stream, tmp_path / "elsewhere")
    stream.symlink_to(tmp_path / "elsewhere")
    before = files_in(tmp_path / "elsewhere")

    with jetlake.Server(config=configuration) as server:
        assert ask(server, "$JS.API.STREAM.NAMES")["total"] == 0

    assert files_in(tmp_path / "elsewhere") == before
