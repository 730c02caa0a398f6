"""BPF programs in this machine's kernel: there while a block runs, and gone when its process is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ewan.labs.base.product import ROOT
from ewan.labs.congestion.source import ModuleSource
from ewan.labs.runtime import bpf_programs
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.binary import node_binary
from ewan.labs.runtime.kernel_modules import SourceError

PROGRAM = (ROOT / "labs/congestion/tests/tcp_mine.bpf.c").read_text()
LOG = """\
libbpf: prog 'mine_ssthresh': BPF program load failed: Invalid argument
libbpf: prog 'mine_ssthresh': -- BEGIN PROG LOAD LOG --
0: R1=ctx() R10=fp0
; while (sk->snd_cwnd) ca->losses++; @ tcp_mine.bpf.c:36
8: (61) r2 = *(u32 *)(r1 +1444)
infinite loop detected at insn 9
cur state: R0=scalar()
old state: R0=scalar()
processed 22 insns (limit 1000000) max_states_per_insn 0 total_states 3 peak_states 3 mark_read 1
-- END PROG LOAD LOG --
libbpf: failed to load object 'tcp_mine.bpf.o'
"""
HOLDS = """
import sys, time
from pathlib import Path
from ewan.labs.runtime import bpf_programs
with bpf_programs.registered({"tcp_mine.bpf.c": Path(sys.argv[1])}):
    print("there", flush=True)
    time.sleep(60)
"""
AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")


def test_the_verifiers_reason_is_one_line_with_the_line_of_the_source() -> None:
    error = bpf_programs._not_registered("tcp_mine.bpf.c", "Invalid argument", LOG)
    assert str(error) == (
        "tcp_mine.bpf.c: this kernel refuses mine_ssthresh: infinite loop detected at insn 9 "
        "(at: while (sk->snd_cwnd) ca->losses++; @ tcp_mine.bpf.c:36)"
    )
    assert "processed" not in "".join(error.messages)


def test_what_is_no_refusal_of_a_program_is_said_by_libbpf() -> None:
    error = bpf_programs._not_registered("tcp_mine.bpf.c", "No such process", "libbpf: extern func 'x' not found\n")
    assert str(error) == "tcp_mine.bpf.c: this kernel does not register it: No such process"
    assert error.messages == ["libbpf: extern func 'x' not found"]


def test_a_kernel_without_types_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bpf_programs, "BTF", Path("/none"))
    with pytest.raises(LabError, match="does not describe its types"):
        bpf_programs.compiled(ModuleSource("tcp_mine.bpf.c", b"", {}), Path())


def test_all_that_is_missing_is_named_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bpf_programs, "BTF", Path("/"))
    monkeypatch.setattr(bpf_programs, "LIBBPF", Path("/none"))
    monkeypatch.setattr(bpf_programs, "SEARCH", "/none")
    with pytest.raises(LabError) as refused:
        bpf_programs.compiled(ModuleSource("tcp_mine.bpf.c", b"", {}), Path())
    assert str(refused.value) == (
        "tcp_mine.bpf.c: what compiles BPF programs is missing here: apt install clang bpftool libbpf-dev"
    )


@pytest.fixture
def program() -> tuple[str, Path]:
    """A control whose name nobody else on this machine has, and its object file."""
    name = f"mine{os.getpid()}"
    text = PROGRAM.replace('"mine"', f'"{name}"')
    return name, bpf_programs.compiled(ModuleSource("tcp_mine.bpf.c", text.encode(), {}), node_binary(None))


@pytest.mark.live
def test_this_kernel_has_a_control_while_a_block_runs(program: tuple[str, Path]) -> None:
    name, path = program
    with bpf_programs.registered({"tcp_mine.bpf.c": path}):
        assert name in AVAILABLE.read_text()
        with pytest.raises(SourceError, match="has a congestion control of its name"):
            bpf_programs.registered({"tcp_mine.bpf.c": path}).__enter__()
    assert name not in AVAILABLE.read_text()


@pytest.mark.live
def test_a_control_is_gone_when_its_process_is_killed(program: tuple[str, Path]) -> None:
    name, path = program
    with subprocess.Popen([sys.executable, "-c", HOLDS, path], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == b"there\n"
        assert name in AVAILABLE.read_text()
        holder.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 10
    while name in AVAILABLE.read_text() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert name not in AVAILABLE.read_text()


@pytest.mark.live
def test_the_compiler_names_the_line_of_the_program() -> None:
    text = PROGRAM.replace("->snd_cwnd /", "->snd_cwdn /")
    with pytest.raises(SourceError, match=r"tcp_mine\.bpf\.c: it does not compile: 2 errors of its lines") as refused:
        bpf_programs.compiled(ModuleSource("tcp_mine.bpf.c", text.encode(), {}), node_binary(None))
    assert "tcp_mine.bpf.c:34:" in refused.value.messages[0]
