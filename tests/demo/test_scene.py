"""Scenes: an asynchronous one ends with Ctrl-C, whenever it comes."""

import asyncio
import os
import signal

import pytest

from jetlake.demo.scene import in_event_loop


def test_ctrl_c_that_a_scene_has_lost_ends_the_demo():
    async def play(stage, scene):
        os.kill(os.getpid(), signal.SIGINT)
        # As `asyncio.wait_for` of Python 3.11 does it, in the moment in which something arrives.
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return

    with pytest.raises(KeyboardInterrupt):
        in_event_loop(play)(None, None)


def test_a_scene_without_ctrl_c_ends_by_itself():
    played = []

    async def play(stage, scene):
        played.append((stage, scene))

    in_event_loop(play)("stage", "scene")

    assert played == [("stage", "scene")]
