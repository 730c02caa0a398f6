"""The patches of the walks apply, touch few files, and pages name these; `python -m tests.walks` tries them."""

from __future__ import annotations

import re
import subprocess

import pytest

from tests.walks import PLACE, ROOT, WALKS, Walk

TABLE = (ROOT / "docs/explanation/architecture.md").read_text()
each_walk = pytest.mark.parametrize("walk", WALKS, ids=lambda walk: walk.name)


def in_table(walk: Walk) -> list[str]:
    """The files of a walk in the table of docs/explanation/architecture.md, in its order."""
    (row,) = re.findall(
        rf"^\| {walk.to_add} \|(.*)\| \[{walk.page}\]\(../contribute/adding/{walk.page}\) \|$", TABLE, re.M
    )
    return re.findall(r"`([^`]+)`", row)


@each_walk
def test_a_patch_applies(walk: Walk) -> None:
    done = subprocess.run(
        ["git", "apply", "--check", str(walk.patch)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{walk.patch.name}: {done.stderr}\nmake the same change and write `git diff` into it"


@each_walk
def test_a_patch_touches_few_files_one_of_them_a_test(walk: Walk) -> None:
    assert len(walk.files) <= walk.most_files
    assert walk.has_a_test


def test_a_metric_changes_no_line_that_lists_other_metrics() -> None:
    (walk,) = (walk for walk in WALKS if walk.name == "metric")
    changed = [line for line in walk.patch.read_text().splitlines() if re.match("-(?!--)", line)]
    assert not changed, "another metric would change the same line, and the patch would not apply"


@each_walk
def test_the_table_of_the_architecture_has_the_files_of_a_walk(walk: Walk) -> None:
    assert sorted(in_table(walk)) == sorted(walk.files)


@each_walk
def test_the_page_of_an_addition_names_its_files_in_the_same_order(walk: Walk) -> None:
    page = (ROOT / "docs/contribute/adding" / walk.page).read_text()
    from_here = page
    for path in in_table(walk):
        assert path in page, f"docs/contribute/adding/{walk.page} does not name {path}"
        assert path in from_here, (
            f"docs/contribute/adding/{walk.page} names {path} earlier than docs/explanation/architecture.md does"
        )
        from_here = from_here.partition(path)[2]


def test_every_patch_is_a_walk() -> None:
    assert {walk.patch for walk in WALKS} == set(PLACE.glob("*.patch"))
