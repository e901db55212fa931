"""The scenes are played until the first one fails, and the page shows how far it came."""

from pathlib import Path

from jetlake.demo.run import play, write_page
from jetlake.demo.scene import Script
from jetlake.errors import ClientError, MissingDependencyError


def script(name, play_scene):
    return Script(name, name.title(), "What it is about.", ("what",), play_scene)


def holds(_stage, scene):
    scene.check("one is one", expected=1, found=1)


def differs(_stage, scene):
    scene.check("one is two", expected=1, found=2)


def breaks(_stage, _scene):
    raise ClientError("the server is gone")


def lacks(_stage, _scene):
    raise MissingDependencyError("no Java: install one")


def test_scene_that_differs_from_the_truth_is_the_last_one(stage, display):
    report = play(stage, display, [script("good", holds), script("wrong", differs), script("never", holds)])
    write_page(report, [])

    assert display.ended == ["good", "wrong"]
    assert (report.failed, report.failure) == ("Wrong", "one is two: expected 1, found 2")
    page = Path(report.page).read_text()
    assert "failed: Wrong" in page
    assert "one is two: <code>2</code> instead of <code>1</code>" in page


def test_scene_that_breaks_off_says_why(stage, display):
    report = play(stage, display, [script("broken", breaks)])

    assert (report.failed, report.failure) == ("Broken", "ClientError: the server is gone")


def test_scene_that_needs_what_is_missing_is_left_out_and_the_others_go_on(stage, display):
    report = play(stage, display, [script("java", lacks), script("good", holds)])

    assert report.failed == ""
    assert [scene.missing for scene in report.scenes] == ["no Java: install one", ""]
    assert [report.has_shown(name) for name in ("java", "good", "other")] == [False, True, False]
