"""Fixtures of the demo's tests: a stage of the smallest size, and a display that keeps what it is shown."""

import pytest

from jetlake.demo.stage import Scale, Stage

SMALLEST = Scale(1)


class Kept:
    """A display that shows nothing."""

    def __init__(self):
        self.begun = []
        self.ended = []

    def begin(self, scene):
        self.begun.append(scene.name)

    def end(self, scene):
        self.ended.append(scene.name)


@pytest.fixture
def display():
    return Kept()


@pytest.fixture
def stage(tmp_path):
    with Stage(tmp_path / "demo", SMALLEST) as opened:
        yield opened
