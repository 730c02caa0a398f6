"""The library of kernels: its names, and what a failing or interrupted build leaves of it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ewan.labs.compile import HostFacts, compile
from ewan.labs.kernels import adding, library
from ewan.labs.kernels.adding import Wanted
from ewan.labs.plan import OwnKernel, from_json, to_json
from ewan.labs.runtime.base import LabError
from ewan.labs.spec import DescriptionError, from_template, parse

BINARY = Path("/ewan-node")
PATCH = {"name": "0016-x.patch", "title": "x", "kind": "speed", "lost": "Time.", "state": "does not apply", "why": "y"}


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {"XDG_DATA_HOME": str(tmp_path / "data"), "EWAN_CACHE": str(tmp_path / "cache")}


def said(what: str) -> dict[str, Any]:
    """What a build says of its kernel."""
    return {
        "version": "7.3.4",
        "source": {"kind": "tree", "what": what, "sha256": "0" * 64, "commit": ""},
        "own_patches": [],
        "patches": [PATCH, {**PATCH, "name": "0017-y.patch", "state": "applied", "why": ""}],
        "controls_left_out": {"prague": "the tree has its own"},
        "options_left_out": ["PREEMPT_NONE"],
        "kernel_sha256": "1" * 64,
        "config_sha256": "2" * 64,
        "seconds": 1.5,
    }


Build = Callable[..., dict[str, Any]]


@pytest.fixture
def build(monkeypatch: pytest.MonkeyPatch) -> Callable[[Build], None]:
    monkeypatch.setattr(adding, "_started", lambda kernel, binary: ("bbr", "reno"))
    return lambda built: monkeypatch.setattr(adding, "_built", built)


def built(wanted: Wanted, binary: Path, environment: object, new: Path, tell: object) -> dict[str, Any]:
    for name in ("linux", "config", "headers.tar.xz"):
        (new / name).write_text("x")
    return said(wanted.path())


def add(name: str, source: Path, environment: dict[str, str]) -> library.AddedKernel:
    return adding.add(Wanted(name, source), BINARY, environment, lambda line: None)


def test_an_added_kernel_is_there_by_its_name_until_it_is_removed(
    tmp_path: Path, environment: dict[str, str], build: Callable[[Build], None]
) -> None:
    build(built)
    kernel = add("bbr3", tmp_path, environment)
    assert library.added(environment) == {"bbr3": kernel}
    assert [patch.name for patch in kernel.left_out()] == ["0016-x.patch"]
    path = library.path_of("bbr3", environment)
    assert path == tmp_path / "data/ewan/kernels/bbr3/linux"
    assert library.congestion_of("bbr3", environment) == ("bbr", "reno")
    assert add("bbr3", tmp_path, environment) == kernel  # the same tree again
    assert sorted(each.name for each in path.parent.parent.iterdir()) == [".lock", "bbr3"]
    (tmp_path / "cache/kernels/bbr3").mkdir(parents=True)
    assert library.remove("bbr3", environment) > 0
    assert library.added(environment) == {} and not (tmp_path / "cache/kernels/bbr3").exists()


def test_the_default_kernel_has_a_name_and_is_not_in_the_library(tmp_path: Path, environment: dict[str, str]) -> None:
    assert library.path_of("6.12", environment) is None
    assert library.congestion_of("6.12", environment) is None
    with pytest.raises(LabError, match=r"the name 6\.12 is that of the default kernel"):
        add("6.12", tmp_path, environment)
    with pytest.raises(LabError, match="this is the default kernel"):
        library.remove("6.12", environment)


@pytest.mark.parametrize("name", ["", "../up", ".new-x", "Bbr3", "a b", "-x", "a/b", "x" * 32])
def test_a_name_that_is_no_name_is_refused(tmp_path: Path, environment: dict[str, str], name: str) -> None:
    with pytest.raises(LabError, match="write a name of at most 31 small letters"):
        add(name, tmp_path, environment)
    with pytest.raises(LabError, match="there is none of this name"):
        library.path_of(name, environment)
    with pytest.raises(LabError, match="there is none of this name"):
        library.remove(name, environment)


def test_a_name_that_another_source_has_is_taken(
    tmp_path: Path, environment: dict[str, str], build: Callable[[Build], None]
) -> None:
    build(built)
    add("mine", tmp_path, environment)
    with pytest.raises(
        LabError, match=r"kernel mine is of .* already: choose another name, or ewan kernel remove mine"
    ):
        add("mine", tmp_path / "other", environment)


@pytest.mark.parametrize("error", [LabError("it does not compile"), KeyboardInterrupt()])
def test_a_build_that_fails_or_is_interrupted_leaves_the_library_as_it_was(
    tmp_path: Path, environment: dict[str, str], build: Callable[[Build], None], error: BaseException
) -> None:
    build(built)
    kernel = add("mine", tmp_path, environment)

    def fails(wanted: Wanted, binary: Path, environment: object, new: Path, tell: object) -> dict[str, Any]:
        (new / "linux").write_text("half")
        raise error

    build(fails)
    for name in ("mine", "other"):
        with pytest.raises(type(error)):
            add(name, tmp_path, environment)
    assert library.added(environment) == {"mine": kernel}
    assert (tmp_path / "data/ewan/kernels/mine/linux").read_text() == "x"
    assert not list((tmp_path / "data/ewan/kernels").glob(".new-*"))


def test_the_fault_of_a_build_is_told_once(tmp_path: Path, environment: dict[str, str]) -> None:
    lines: list[str] = []
    mine = {**os.environ, **environment}
    with pytest.raises(LabError, match=r"^kernel add: [^:]*none: there is no such file or directory"):
        adding.add(Wanted("mine", tmp_path / "none"), BINARY, mine, lines.append)
    assert not [line for line in lines if "no such file" in line]


def test_a_kernel_that_makes_no_lab_is_not_added(
    tmp_path: Path,
    environment: dict[str, str],
    build: Callable[[Build], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    build(built)
    monkeypatch.undo()
    monkeypatch.setattr(adding, "_built", built)
    with pytest.raises(LabError, match="it is built, and makes no lab"):
        add("mine", tmp_path, environment)
    assert library.added(environment) == {}


def test_what_is_damaged_is_named_with_what_to_do(
    tmp_path: Path, environment: dict[str, str], build: Callable[[Build], None]
) -> None:
    build(built)
    add("mine", tmp_path, environment)
    place = tmp_path / "data/ewan/kernels/mine"
    (place / "linux").unlink()
    with pytest.raises(LabError, match="is not there: add it again"):
        library.path_of("mine", environment)
    (place / library.NOTE).write_text("{")
    with pytest.raises(LabError, match="ewan kernel remove mine, and add it again"):
        library.added(environment)
    library.remove("mine", environment)
    assert library.added(environment) == {}


def test_without_a_home_there_is_no_library() -> None:
    assert library.added({}) == {}
    with pytest.raises(LabError, match="set XDG_DATA_HOME"):
        add("mine", Path(), {})


def test_a_plan_takes_the_kernel_whose_bytes_it_names(
    tmp_path: Path, environment: dict[str, str], build: Callable[[Build], None]
) -> None:
    build(built)
    added = add("mine", tmp_path, environment)
    folder = tmp_path / "data/ewan/kernels"
    plan = compile(from_template("dumbbell", {"kernel": "mine"}), HostFacts((0,), (), "virtual"))
    assert plan.kernel == OwnKernel("mine")
    chosen = library.chosen(plan, environment)
    assert chosen.kernel == OwnKernel("mine", added.kernel_sha256) and from_json(to_json(chosen)) == chosen
    (folder / "mine").rename(folder / "other")
    assert library.program_of(chosen.kernel, environment) == (chosen.kernel, folder / "other/linux")
    with pytest.raises(LabError, match="kernel mine: there is none of this name: the library has other"):
        library.chosen(plan, environment)
    with pytest.raises(LabError, match="kernel mine, SHA-256 5555555555555555, is not on this machine"):
        library.program_of(OwnKernel("mine", "5" * 64), environment)


def test_the_default_kernel_stands_in_no_plan_and_a_live_lab_has_none() -> None:
    asked = from_template("dumbbell", {"kernel": library.DEFAULT})
    assert compile(asked, HostFacts((0,), (), "virtual")).kernel is None
    with pytest.raises(DescriptionError, match=r'KERNEL "mine": is of the virtual clock'):
        compile(from_template("dumbbell", {"kernel": "mine"}), HostFacts((0, 1), ()))
    with pytest.raises(DescriptionError, match="one virtual kernel runs all nodes"):
        parse("topology: dumbbell\nnodes: {left1: {kernel: mine}}", Path("x.lab.yaml"))
