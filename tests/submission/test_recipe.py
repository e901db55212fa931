"""The shell recipe of the guide is run as it is printed."""

import os
import re
import subprocess
from pathlib import Path

from jetlake.submission.message import check
from tests.submission.reading import messages, until_count

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "submission.md"


def recipe():
    (found,) = re.findall(r"^```sh\n(submit\(\) .*?)^```$", GUIDE.read_text(), re.MULTILINE | re.DOTALL)
    return found


def run(spool, *words):
    return subprocess.run(
        ["sh", "-c", f'{recipe()}\nsubmit "$@"', "sh", *words],
        env=os.environ | {"JETLAKE_SPOOL": str(spool.folder)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_it_has_ten_lines():
    assert len(recipe().splitlines()) == 10


async def test_what_it_writes_is_delivered(api, spool, make_stream, start_sender, tmp_path):
    stream = await make_stream()
    spool.create()
    payload = tmp_path / "payload"
    payload.write_bytes(bytes(range(256)) * 10)

    for _ in range(2):
        done = run(spool, "tasks.status", str(payload))
        assert (done.returncode, done.stderr) == (0, "")
    names = spool.names(4)
    for name in names:
        check(spool.read(4, name))
        assert os.stat(spool.lane(4) / name).st_mode & 0o777 == 0o600
    start_sender()
    await until_count(api, stream, 2)

    found = await messages(api, stream)
    assert [message.payload for message in found] == [payload.read_bytes()] * 2
    assert [message.headers["Nats-Msg-Id"] for message in found] == [name.partition("-")[2][:-4] for name in names]
    assert found[0].headers["Choria-Reliable"] == "1"


def test_without_a_spool_it_fails_and_writes_nothing(spool):
    done = run(spool, "tasks.status", str(GUIDE))

    assert done.returncode != 0
    assert not spool.folder.exists()


def test_without_a_payload_it_fails_and_leaves_nothing(spool):
    spool.create()

    done = run(spool, "tasks.status", str(spool.folder / "no-such-file"))

    assert done.returncode != 0
    assert sorted(os.listdir(spool.folder)) == ["P0", "P1", "P2", "P3", "P4"]
