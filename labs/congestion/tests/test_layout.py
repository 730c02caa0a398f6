"""The layout of a state is what the compiler says; a module of which it cannot be told is refused in one line."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ewan.labs.congestion import layout
from ewan.labs.congestion.source import ModuleSource
from ewan.labs.record.traffic import StateField

STATE = """
enum mine_mode { MINE_STARTUP, MINE_DRAIN = 3 };
enum phase { PHASE_UP = -1, PHASE_DOWN = 1 };
struct window { unsigned int low; short high; };
struct mine {
    unsigned int rounds;
    unsigned int mode:3, unused:5, gain:10;
    int slope:6;
    unsigned long long stamp;
    enum phase phase;
    struct window windows[2];
    void *pointer;
    _Bool known;
};
"""
USE = "void *state(void); unsigned long take(void) { struct STRUCT *ca = state(); return ca->rounds; }\n"


def module(directory: Path, source: str, *options: str) -> Path:
    """Compiles a module."""
    (directory / "tcp_mine.c").write_text(source)
    target = directory / "tcp_mine.o"
    subprocess.run(["cc", *options, "-O2", "-c", "tcp_mine.c", "-o", target], cwd=directory, check=True)
    return target


def use(struct: str) -> str:
    return USE.replace("STRUCT", struct)


ENUMS = "int first(struct mine *ca) { ca->mode = MINE_DRAIN; return ca->phase; }\n"


@pytest.mark.parametrize("version", ["-gdwarf-4", "-gdwarf-5"])
def test_each_variable_has_its_place_and_its_words(tmp_path: Path, version: str) -> None:
    found = layout.read(module(tmp_path, STATE + use("mine") + ENUMS, version), "mine")
    assert found == (
        StateField("rounds", 0, 4),
        StateField("mode", 4, 4, bits=3, values={"0": "STARTUP", "3": "DRAIN"}),
        StateField("gain", 4, 4, bit_offset=8, bits=10),
        StateField("slope", 4, 4, signed=True, bit_offset=18, bits=6),
        StateField("stamp", 8, 8),
        StateField("phase", 16, 4, signed=True, values={"-1": "UP", "1": "DOWN"}),
        StateField("windows[0].low", 20, 4),
        StateField("windows[0].high", 24, 2, signed=True),
        StateField("windows[1].low", 28, 4),
        StateField("windows[1].high", 32, 2, signed=True),
        StateField("known", 48, 1),
    )


@pytest.mark.parametrize("name", ["other", "mine"])
def test_the_struct_is_found_by_its_name_or_by_its_use(tmp_path: Path, name: str) -> None:
    assert layout.read(module(tmp_path, STATE + use("mine"), "-g"), name)[0].name == "rounds"


def test_a_struct_called_info_comes_first(tmp_path: Path) -> None:
    own = "struct mine_info { int rounds; signed char first; };\n"
    both = use("mine") + own + "int get(struct mine_info *ca) { return ca->first; }\n"
    found = layout.read(module(tmp_path, STATE + both, "-g"), "mine")
    assert [field.name for field in found] == ["rounds", "first"]


def test_structs_of_headers_elsewhere_are_none_of_the_module(tmp_path: Path) -> None:
    (tmp_path / "include").mkdir()
    (tmp_path / "include/net.h").write_text("struct other { int rounds; };\n")
    path = module(tmp_path, '#include "include/net.h"\n' + use("other"), "-g")
    with pytest.raises(layout.LayoutError, match=r"call it mine_info, or write .* \(it defines none\)"):
        layout.read(path, "mine")


def test_a_source_may_say_which_struct_is_the_state(tmp_path: Path) -> None:
    text = "/* congestion_state: struct window */\n" + STATE
    assert layout.said(ModuleSource("tcp_a.c", text.encode(), {})) == "window"
    assert layout.said(ModuleSource("tcp_a.c", STATE.encode(), {"a.h": b"// congestion_state: mine"})) == "mine"
    assert layout.said(ModuleSource("tcp_a.c", STATE.encode(), {})) == ""
    found = layout.read(module(tmp_path, STATE + use("mine"), "-g"), "other", "window")
    assert [field.name for field in found] == ["low", "high"]


def test_a_state_without_a_number_is_refused(tmp_path: Path) -> None:
    none = "struct mine { void *rounds; };\nvoid *take(struct mine *c) { struct mine *own = c; return own->rounds; }\n"
    with pytest.raises(layout.LayoutError, match="struct mine has no variables that are whole numbers"):
        layout.read(module(tmp_path, none, "-g"), "mine")


def test_a_module_without_debug_information_is_refused(tmp_path: Path) -> None:
    with pytest.raises(layout.LayoutError, match="compile it with -g"):
        layout.read(module(tmp_path, use("mine").join(["struct mine { int rounds; };\n", ""])), "mine")


def test_a_state_that_is_too_large_is_refused(tmp_path: Path) -> None:
    large = "struct mine { int rounds; char all[101]; };\n"
    with pytest.raises(layout.LayoutError, match="has 108 bytes: a control has 104"):
        layout.read(module(tmp_path, large + use("mine"), "-g"), "mine")


def test_what_is_no_module_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "tcp_mine.ko"
    path.write_text("no module")
    with pytest.raises(layout.LayoutError, match="is no compiled module"):
        layout.read(path, "mine")
