"""Files and folders of all formats as one declaration."""

import pytest

from jetlake.errors import ConfigurationError
from jetlake.iac.reader import read


def titles(declaration):
    return [resource.title for resource in declaration.resources]


def test_all_files_of_a_folder_are_one_declaration(tmp_path):
    (tmp_path / "a.yaml").write_text("project: shop\nvariables: {AGE: 1h}\ndefaults: {stream: {storage: memory}}\n")
    (tmp_path / "b.json").write_text('{"streams": {"J": {"max_age": "${AGE}"}}}')
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "c.toml").write_text('[streams.T]\nsubjects = ["t.>"]\n')
    (tmp_path / "d.tf").write_text('resource "jetstream_stream" "F" { name = "F" }')
    (tmp_path / ".hidden.yaml").write_text("nonsense: 1")
    (tmp_path / "notes.md").write_text("# Notes")

    declaration = read([tmp_path], {}, {})

    assert declaration.project == "shop"
    assert titles(declaration) == ["stream J", "stream T", "stream F"]
    assert [resource.config.get("storage") for resource in declaration.resources] == ["memory", "memory", None]


def test_a_file_that_is_named_twice_is_read_once(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_text("streams: {A: {}}")

    assert titles(read([path, tmp_path], {}, {})) == ["stream A"]


def test_a_variable_that_is_a_number_is_filled_in_as_it_was_written(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_text(
        "variables: {BUILD: 007, V: 1.10, ON: True}\nstreams: {'A_${BUILD}': {subjects: ['a.${V}.${ON}']}}\n"
    )

    (resource,) = read([path], {}, {}).resources

    assert (resource.name, resource.config["subjects"]) == ("A_007", ["a.1.10.true"])


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "holds no declarations"),
        ({"a.yaml": "project: a", "b.yaml": "project: b"}, "the project is 'b' here and 'a' elsewhere"),
        ({"a.yaml": "variables: {A: 1}", "b.yaml": "variables: {A: 2}"}, "the variable A is given twice"),
        ({"a.yaml": "variables: {A: [1]}"}, "must be text or a number"),
        (
            {"a.yaml": "defaults: {stream: {storage: file}}", "b.yaml": "defaults: {stream: {storage: memory}}"},
            "the default storage of a stream is given twice",
        ),
        ({"a.yaml": "streams: {A: {}}", "b.yaml": "streams: {A: {}}"}, "is declared already at"),
    ],
)
def test_contradictions_are_refused(tmp_path, files, message):
    for name, text in files.items():
        (tmp_path / name).write_text(text)

    with pytest.raises(ConfigurationError) as refused:
        read([tmp_path], {}, {})

    assert message in str(refused.value)


@pytest.mark.parametrize(("name", "message"), [("absent.yaml", "cannot be read"), ("absent", "is not there")])
def test_what_is_not_there_is_refused(tmp_path, name, message):
    with pytest.raises(ConfigurationError, match=message):
        read([tmp_path / name], {}, {})


def test_what_has_another_ending_is_refused(tmp_path):
    path = tmp_path / "a.ini"
    path.write_text("")

    with pytest.raises(ConfigurationError, match="its name must end in"):
        read([path], {}, {})


def test_a_file_that_is_no_text_is_refused(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_bytes(b"\xff\xfe\x00")

    with pytest.raises(ConfigurationError, match="not UTF-8 text"):
        read([path], {}, {})
