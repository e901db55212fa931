"""The documentation agrees with the code and with itself."""

import re
from pathlib import PurePosixPath

from jetlake.server.flags import FLAGS, spelling

LINK = re.compile(r"\]\(([^)#\s]+)(#[^)\s]*)?\)")
WEB = ("http://", "https://", "mailto:")


def test_every_link_leads_somewhere(tree):
    wrong = []
    for path in [path for path in tree.paths if path.endswith(".md")]:
        for target, _ in LINK.findall(tree.read(path)):
            if target.startswith(WEB):
                continue
            found = (tree.root / PurePosixPath(path).parent / target).resolve()
            if not found.exists():
                wrong.append(f"{path}: {target}")

    assert not wrong, "correct the path, it is relative to the page:\n" + "\n".join(wrong)


def test_every_page_can_be_reached_from_the_navigation(tree):
    navigation = tree.read("mkdocs.yml")

    wrong = [path for path in tree.under("docs", suffix=".md") if path.removeprefix("docs/") not in navigation]

    assert not wrong, "add these pages to `nav` in mkdocs.yml:\n" + "\n".join(wrong)


def test_reference_explains_every_flag(tree):
    page = tree.read("docs/reference/command_line.md")

    wrong = [spelling(name) for flag in FLAGS for name in flag.names if f"`{spelling(name)}" not in page]

    assert not wrong, "explain these flags in docs/reference/command_line.md: " + ", ".join(wrong)


def test_changelog_names_the_current_version(tree):
    version = re.search(r'^version = "([^"]+)"', tree.read("Cargo.toml"), re.MULTILINE)
    assert version is not None

    assert f"## {version.group(1)}" in tree.read("CHANGELOG.md"), (
        f"add a section `## {version.group(1)}` to CHANGELOG.md, or change the version in Cargo.toml back"
    )


def test_every_make_target_is_explained(tree):
    makefile = tree.read("Makefile")
    phony = re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)
    assert phony is not None

    for target in set(phony.group(1).split()) - {"tools"}:
        assert re.search(rf"^{target}:.*## \w", makefile, re.MULTILINE), f"explain `{target}` after ## in the Makefile"
