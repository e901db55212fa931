"""The blocking form of object stores."""

from pathlib import Path

import pytest

from jetlake.errors import NotFoundError
from jetlake.objects import StoreConfig, sync


def test_everything_is_there_without_an_event_loop(url, name, tmp_path: Path):
    with sync.connect(url) as stores:
        store = stores.create(StoreConfig(store=name))
        info = store.put("a", b"contents", description="d")
        (tmp_path / "file").write_bytes(b"of a file")
        store.put_file(tmp_path / "file")
        assert store.get("a") == b"".join(store.read("a")) == b"contents"
        store.get_file("file", tmp_path / "copy")
        assert (tmp_path / "copy").read_bytes() == b"of a file"
        assert store.info("a").nuid == info.nuid
        assert store.find("none") is None
        assert [each.name for each in store.list()] == ["a", "file"]
        with store.watch() as infos:
            assert [each and each.name for each in (next(infos) for _ in range(3))] == ["a", "file", None]
        store.add_link("link", info)
        store.add_store_link("whole", name)
        assert store.update_meta("a", description="other").description == "other"
        assert store.delete("link").name == "link"
        assert store.status().store == stores.status(name).store == store.name
        assert name in stores.names()
        assert name in [status.store for status in stores.list()]
        stores.backup(name, tmp_path / "saved")
        store.seal()
        stores.delete(name)
        assert stores.restore(tmp_path / "saved").store == name
        assert stores.open(name).get("a") == b"contents"
        with pytest.raises(NotFoundError):
            stores.open("NONE")
