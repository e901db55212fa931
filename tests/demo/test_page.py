"""The page needs nothing from elsewhere, and shows texts as texts."""

from html.parser import HTMLParser

from jetlake.demo.page import page_of
from jetlake.demo.scene import PageLink, Scene, ScenePart

HOSTILE = "<script>alert('&')</script>"


class Elements(HTMLParser):
    """Collects tags, ids and what the page would load or link to."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.ids, self.addresses, self.unclosed = [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        if tag != "meta":
            self.unclosed.append(tag)
        self.ids += [value for name, value in attributes if name == "id"]
        self.addresses += [value for name, value in attributes if name in {"src", "href"}]

    def handle_endtag(self, tag):
        assert self.unclosed.pop() == tag


def hostile_scene():
    scene = Scene(name="one", title=HOSTILE, explanation=HOSTILE, columns=(HOSTILE,), rows=[(HOSTILE,)])
    scene.parts.append(ScenePart(HOSTILE, (HOSTILE, "number"), [(HOSTILE, 1)]))
    scene.links.append(PageLink(HOSTILE, "report.html"))
    scene.check(HOSTILE, expected=HOSTILE, found=HOSTILE + HOSTILE)
    return scene


def test_texts_of_messages_and_tables_never_become_elements():
    page = page_of(HOSTILE, [hostile_scene()], [HOSTILE])

    assert "script" not in Elements(page).tags
    assert page.count("&lt;script&gt;") >= 10


def test_page_loads_nothing_and_links_only_to_its_neighbours():
    elements = Elements(page_of("headline", [hostile_scene()], ["jetlake stream ls"]))

    assert elements.addresses == ["#one", "#next", "report.html"]
    assert {"one", "next"} <= set(elements.ids)
    assert elements.unclosed == []


def test_bars_are_as_long_as_their_numbers():
    scene = Scene(name="one", title="One", explanation="", columns=("what", "count"), bars=True)
    scene.rows += [("a", 50), ("b", 200)]
    scene.check("something", expected=1, found=1)

    page = page_of("headline", [scene], [])

    assert "width:25%" in page
    assert "width:100%" in page
    assert "1 checks hold" not in page


def test_scene_without_what_it_needs_says_what_is_missing():
    scene = Scene(name="one", title="One", explanation="", columns=(), missing="install `java`")

    assert "Not shown: install <code>java</code>" in page_of("headline", [scene], [])
