"""The generated modules are what protoc makes of the files beside them."""

import pytest

from jetlake.devices.protos.regenerate import FOLDER, generate


def test_generated_modules_are_up_to_date(tmp_path):
    pytest.importorskip("grpc_tools", reason="needs the extra `dev`")

    made = generate(tmp_path)

    assert {path.name for path in made} == {path.name for path in FOLDER.glob("*_pb2.py*")}
    for path in made:
        assert path.read_text() == (FOLDER / path.name).read_text(), f"run `make protos`: {path.name} differs"
