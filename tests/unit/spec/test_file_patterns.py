"""Which files `files` names: the same on every system, and found within bounds whatever links there are."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from patience import does_not_hang

from agenteval.spec import file_patterns
from agenteval.spec.file_patterns import FilePatternError, file_pattern_problem, matching_files

TREE = ("a.yaml", "b.YAML", ".c.yaml", "in/d.yaml", "in/.e.yaml", "in/deep/f.yaml", ".hidden/g.yaml", "[x].yaml")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A folder with files and folders of all sorts."""
    for name in TREE:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    return tmp_path


def names(folder: Path, *patterns: str) -> list[str]:
    return [file.relative_to(folder).as_posix() for file in matching_files(folder, patterns)]


@pytest.mark.parametrize(
    ("patterns", "found"),
    [
        pytest.param(["*.yaml"], ["[x].yaml", "a.yaml"], id="one-folder"),
        pytest.param(["*.YAML"], ["b.YAML"], id="in-its-own-case"),
        pytest.param(["A.yaml"], [], id="not-in-another-case"),
        pytest.param([".*.yaml"], [".c.yaml"], id="hidden-files-by-a-dot"),
        pytest.param([".hidden/*"], [".hidden/g.yaml"], id="hidden-folders-by-a-dot"),
        pytest.param(["*/*"], ["in/d.yaml"], id="two-levels"),
        pytest.param(["**/*.yaml"], ["[x].yaml", "a.yaml", "in/d.yaml", "in/deep/f.yaml"], id="every-level"),
        pytest.param(["**/**/f.yaml", "**/deep/**/*"], ["in/deep/f.yaml"], id="every-level-twice"),
        pytest.param(["./a.yaml", "a.yaml", "*.yaml/"], ["[x].yaml", "a.yaml"], id="each-once"),
        pytest.param(["[[]x].yaml"], ["[x].yaml"], id="a-bracket"),
        pytest.param(["["], [], id="an-open-bracket"),
        pytest.param(["a\0b"], [], id="a-name-that-none-can-have"),
    ],
)
def test_a_pattern_names_files(tree: Path, patterns: list[str], found: list[str]) -> None:
    assert names(tree, *patterns) == found


def test_links_to_files_are_read_and_links_to_folders_are_not_entered(tree: Path) -> None:
    (tree / "in/link.yaml").symlink_to("d.yaml")
    (tree / "again").symlink_to("in")
    assert names(tree, "*/*.yaml") == ["in/d.yaml", "in/link.yaml"]


@does_not_hang
def test_links_of_a_folder_to_itself_take_no_time(tree: Path) -> None:
    for number in range(8):
        (tree / f"loop{number}").symlink_to(".")
    assert names(tree, "/".join(["*"] * 20), "**/*/**/*/**/d.yaml") == []


@given(st.lists(st.sampled_from(["**", "*", "a", "?"]), min_size=1, max_size=40))
def test_a_path_stands_at_no_more_places_than_a_pattern_has_parts(parts: list[str]) -> None:
    """Each further folder is a step from a set of places to the next: no pattern tries one path in many ways."""
    pattern = tuple(parts)
    places = file_patterns._opened(pattern, (0,))
    for _ in range(30):
        places = file_patterns._after(pattern, places, "a")
        assert len(places) <= len(parts) + 1


def test_a_folder_is_entered_only_where_a_pattern_leads_below_it(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_patterns, "MAX_ENTRIES", len(list(tree.iterdir())))
    assert "a.yaml" in names(tree, "*.yaml")
    with pytest.raises(FilePatternError, match="more than 6 files and folders"):
        names(tree, "**/*.yaml")


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("**", "write '**/*.yaml' for the files in them"),
        ("tasks/**", "write 'tasks/**/*.yaml' for the files in them"),
        ("**/", "write '**/*.yaml' for the files in them"),
        ("a**", "is no pattern of files"),
        ("", "is no pattern of files"),
        (".", "is no pattern of files"),
        ("../a.yaml", "is no pattern of files"),
        ("/a.yaml", "is no pattern of files"),
    ],
)
def test_what_is_no_pattern_of_files_says_what_to_write(pattern: str, words: str) -> None:
    assert words in (file_pattern_problem(pattern) or "")
