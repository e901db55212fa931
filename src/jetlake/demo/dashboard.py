"""The dashboard beside the demo: it can be looked at while the other scenes are played.

Invariant: it ends with the stage.
"""

import asyncio
import urllib.request
from html import unescape
from threading import Thread

from jetlake.demo.scene import Scene, Script
from jetlake.demo.stage import Stage
from jetlake.errors import MissingDependencyError

__all__ = ["SCRIPTS"]

PAGES = (("Overview", "/"), ("Streams", "/streams"))

ANSWER_S_MAX = 30.0
"""For a page, on a busy machine."""

END_S_MAX = 10.0


def _dashboard(stage: Stage, scene: Scene) -> None:
    try:
        from jetlake.dashboard.options import DashboardOptions
        from jetlake.dashboard.serving import Dashboard
    except ImportError as error:
        raise MissingDependencyError(
            f"the dashboard needs the package {error.name}: run `pip install 'jetlake[dashboard]'`"
        ) from error

    loop = asyncio.new_event_loop()
    thread = Thread(target=loop.run_forever, name="demo-dashboard", daemon=True)
    thread.start()

    async def begin() -> Dashboard:
        served = Dashboard(DashboardOptions(given=stage.access, port=0))
        await served.start()
        return served

    served = asyncio.run_coroutine_threadsafe(begin(), loop).result(ANSWER_S_MAX)

    def end() -> None:
        asyncio.run_coroutine_threadsafe(served.stop(), loop).result(END_S_MAX)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(END_S_MAX)
        loop.close()

    stage.endings.callback(end)
    stage.tell(f"open {served.url} while the demo runs")
    for title, path in PAGES:
        with urllib.request.urlopen(f"{served.url}{path}", timeout=ANSWER_S_MAX) as response:  # noqa: S310 - our own
            text = unescape(response.read().decode())
        scene.rows.append((title, f"{served.url}{path}"))
        scene.check(f"the page {title} answers", expected="yes", found="yes" if f"<h1>{title}" in text else "no")
    scene.check("it shows the stream of orders", expected="yes", found="yes" if "ORDERS" in text.upper() else "no")


SCRIPTS = (
    Script(
        "dashboard",
        "Dashboard",
        "What the server and its streams are doing, in a browser. It runs as long as the demo does; "
        "`jetlake dashboard` serves it for any server.",
        ("page", "address"),
        _dashboard,
    ),
)
