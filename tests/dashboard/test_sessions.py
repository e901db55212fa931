"""Sessions: one connection each, and all of them gone when the dashboard ends."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import aiohttp

from jetlake.dashboard.sessions import SESSIONS_MAX

SESSIONS = 30


async def open_page(client, address):
    async with client.get(f"{address}/") as response:
        assert response.status == 200
    socket = await client.ws_connect(f"{address}/live", headers={"Origin": address})
    await socket.send_str('{"keys": ["messages.in", "lag"]}')
    # The past and the first figures: all of them are sampled by now.
    await socket.receive()
    await socket.receive()
    return socket


async def with_open_pages(address, count, work):
    """Do something while so many pages are open, each in a session of its own."""
    clients = [aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) for _ in range(count)]
    try:
        # At once: a page that nobody reads for half a minute counts as closed.
        sockets = await asyncio.gather(*(open_page(client, address) for client in clients))
        return await work(clients, sockets)
    finally:
        for client in clients:
            await client.close()


def in_a_thread(coroutine):
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, coroutine).result()


def test_the_dashboard_ends_though_every_session_is_just_asking_its_server(url, start_dashboard):
    dashboard = start_dashboard(url)

    async def end(_clients, sockets):
        code = await asyncio.to_thread(dashboard.stop)
        return code, [(await socket.receive()).type for socket in sockets]

    code, last = in_a_thread(with_open_pages(dashboard.url, SESSIONS, end))

    assert code == 0
    assert set(last) <= {aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSED, aiohttp.WSMsgType.TEXT}


def test_when_all_sessions_are_in_use_the_next_browser_is_told_so_and_one_that_leaves_makes_room(url, start_dashboard):
    dashboard = start_dashboard(url)

    async def one_more(_clients, sockets):
        async with aiohttp.ClientSession() as client:
            async with client.get(f"{dashboard.url}/") as response:
                refused = response.status, await response.text()
            await sockets[0].close()
            # The dashboard hears of it a moment later.
            for _ in range(100):
                async with client.get(f"{dashboard.url}/") as response:
                    if response.status == 200:
                        return refused, True
                await asyncio.sleep(0.1)
            return refused, False

    (status, text), made_room = in_a_thread(with_open_pages(dashboard.url, SESSIONS_MAX, one_more))

    assert (status, f"All {SESSIONS_MAX} sessions" in text) == (503, True)
    assert made_room


def test_the_pages_of_a_session_end_with_its_logout(url, start_dashboard):
    dashboard = start_dashboard(url)

    async def log_out(clients, sockets):
        async with clients[0].get(f"{dashboard.url}/") as response:
            token = (await response.text()).partition('name="form_token" value="')[2].partition('"')[0]
        headers = {"Origin": dashboard.url, "X-Form-Token": token}
        async with clients[0].post(f"{dashboard.url}/logout", headers=headers) as response:
            assert response.status == 200
        while (message := await sockets[0].receive()).type is aiohttp.WSMsgType.TEXT:
            pass
        return message.type

    kind = in_a_thread(with_open_pages(dashboard.url, 1, log_out))

    assert kind in (aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSED, aiohttp.WSMsgType.CLOSING)
