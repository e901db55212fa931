"""Test programs against a real server: a pytest plug-in, and what was published to a server.

```python
def test_order_is_announced(jetlake_server, assert_published):
    place_order(jetlake_server.url, 42)

    assert_published("orders.new", count=1)
```

- `plugin`    the fixtures `jetlake_server`, `jetlake_clock`, `jetlake_client`, `jetlake_published`, `assert_published`
- `recorder`  `Recorder`: every message that is published to a server, for assertions
- `clock`     `Clock`: the time of a server, moved by hand
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from jetlake.testing.clock import Clock
    from jetlake.testing.recorder import Published, Recorder

__all__ = ["Clock", "Published", "Recorder"]

_HOME_OF_NAME = {
    "Clock": "jetlake.testing.clock",
    "Published": "jetlake.testing.recorder",
    "Recorder": "jetlake.testing.recorder",
}


def __getattr__(name: str) -> object:
    # pytest loads the plug-in, and so this package, in every project that has Jetlake installed.
    home = _HOME_OF_NAME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it exports {', '.join(__all__)}")
    from importlib import import_module

    return getattr(import_module(home), name)
