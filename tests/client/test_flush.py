"""`flush`: the server has what was sent before, though nats-py writes a PING before what is pending."""

import subprocess
import sys

# In a process of its own: other tests have nats-py write in order.
PROGRAM = """
import asyncio, nats
from jetlake.client.connection import flush

INFO = b'INFO {"server_id":"x","version":"2.15.1","headers":true,"max_payload":1048576,"proto":1}\\r\\n'

async def serve(reader, writer):
    writer.write(INFO)
    while line := await reader.readline():
        print(line.decode().split()[0])
        if line.startswith(b"PING"):
            writer.write(b"PONG\\r\\n")
    writer.close()

async def main():
    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        connection = await nats.connect(f"nats://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        await connection.publish("shout", b"hello")
        await flush(connection)
        print("flushed")
        await connection.close()

asyncio.run(main())
"""


def test_message_has_arrived_before_the_last_pong():
    ended = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, timeout=60)
    words = ended.stdout.split()
    before = words[: words.index("flushed")]

    assert "PUB" in before
    # The last PING that was answered came behind the message.
    assert before.index("PUB") < len(before) - 1 - before[::-1].index("PING")
