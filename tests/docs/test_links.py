"""Every link inside the documentation leads to a page, and every # in one to a heading."""

from __future__ import annotations

import re

from tests.docs.pages import REPOSITORY, anchors, documentation, links

WEB = re.compile(r"^(https?|mailto):")


def test_every_link_leads_to_a_file_and_every_anchor_to_a_heading():
    wrong = []
    for page in documentation():
        for line, target in links(page):
            if WEB.match(target):
                continue
            path, _, anchor = target.partition("#")
            found = (REPOSITORY / page).parent.joinpath(path).resolve() if path else REPOSITORY / page
            if not found.exists():
                wrong.append(f"{page}:{line}: there is no file {path}")
            elif anchor and found.suffix == ".md" and anchor not in anchors(found.relative_to(REPOSITORY).as_posix()):
                wrong.append(f"{page}:{line}: {path or page} has no heading #{anchor}")

    assert not wrong, "correct the link, or the heading it names:\n" + "\n".join(wrong)


def test_links_are_found_where_they_are():
    assert sum(len(links(page)) for page in documentation()) > 200
