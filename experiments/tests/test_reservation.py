"""Needs that this machine lacks are refused before anything starts, with the remedy."""

from __future__ import annotations

import dataclasses
from dataclasses import replace
from pathlib import Path

import pytest

from ewan.experiments.engine import reservation
from ewan.experiments.tests.engines import TEXT, jobs
from ewan.generator import congestion
from ewan.labs.base import codec
from ewan.labs.base.units import Duration
from ewan.labs.link import TraceRows
from ewan.labs.runtime import memory
from ewan.labs.runtime.base import LabError


def test_the_virtual_kernel_has_the_congestion_controls_of_the_papers() -> None:
    assert {"reno", "cubic", "bic", "highspeed", "scalable", "htcp", "westwood", "vegas", "bbr"} <= set(
        congestion.in_virtual()
    )


def test_the_refusal_of_a_congestion_control_hints_at_the_virtual_clock() -> None:
    linux = set(congestion.in_virtual()) - set(congestion.own())
    missing = sorted(linux - set(congestion.in_live(linux)))
    if missing:
        with pytest.raises(LabError, match=f"{missing[0]}: this kernel lets nodes have .*reno.*--runtime virtual"):
            congestion.refuse(missing[:1], virtual=False)
        with pytest.raises(LabError, match=f"--runtime virtual, whose kernel has {missing[0]}$"):
            congestion.refuse([missing[0], "vegan"], virtual=False)
    with pytest.raises(LabError, match=r"vegan: this kernel lets nodes have [^:]*$"):
        congestion.refuse(["reno", "vegan"], virtual=False)
    congestion.refuse(["reno"], virtual=False)


def test_the_names_of_our_own_congestion_controls_are_those_of_their_sources() -> None:
    ghstcp = dict.fromkeys(("ghstcp", "ghstcp0", "hstcp"), "tcp_ghstcp")
    assert congestion.as_bpf() == {"bbr3": "tcp_bbr3", "fast": "tcp_fast"} | ghstcp
    assert congestion.own() == congestion.as_bpf() | {"prague": "tcp_prague"}
    assert congestion.own().keys() <= set(congestion.in_virtual())


@pytest.mark.parametrize(
    ("types", "way"),
    [
        ("/", r"make -C emulator/kernel/tcp bpf-load \(apt install make clang bpftool libbpf-dev\)"),
        (
            "/nowhere",
            "cp -r emulator/kernel/tcp /usr/src/ewan-tcp-1.0 && dkms install ewan-tcp/1.0 && modprobe .*tcp_ghstcp",
        ),
    ],
)
def test_the_refusal_of_our_own_says_how_a_kernel_gets_them(
    monkeypatch: pytest.MonkeyPatch, types: str, way: str
) -> None:
    monkeypatch.setattr(congestion, "in_live", lambda wanted=(): ("cubic", "reno"))
    monkeypatch.setattr(congestion, "BTF", Path(types))
    with pytest.raises(LabError, match=f"--runtime virtual, whose kernel has them all; .* as root: {way}$"):
        congestion.refuse(["fast", "ghstcp", "hstcp"], virtual=False)
    why = "" if types == "/nowhere" else r" \(tcp_prague: no BPF program\)"
    with pytest.raises(LabError, match=rf"as root{why}: cp .* && modprobe -a tcp_fast tcp_prague$"):
        congestion.refuse(["fast", "prague"], virtual=False)
    with pytest.raises(LabError, match=r"this kernel lets nodes have cubic, reno: [^;]*$"):
        congestion.refuse(["vegas"], virtual=False)


def test_a_missing_tool_is_refused_with_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    (first, _) = jobs(TEXT.replace("congestion: reno,", "congestion: reno, generator: iperf3,"))
    reservation.tools(reservation.needs([first], virtual=True))
    monkeypatch.setattr(reservation, "SEARCHED", "/nowhere")
    with pytest.raises(LabError, match=r"^iperf3, which .* is not on this machine: install the package iperf3$"):
        reservation.tools(reservation.needs([first], virtual=True))


def test_what_commands_read_is_there_before_the_first_run(tmp_path: Path) -> None:
    first, *_ = jobs()
    program = codec.replace(first.program, needs=("/nonexistent",))
    wanted = reservation.needs([replace(first, program=program)], virtual=True)
    with pytest.raises(LabError, match=r"^needs: /nonexistent: is not on this machine: write a path that is there$"):
        reservation.check(wanted, True, tmp_path, True)


def test_a_trace_that_is_shorter_than_a_run_is_said() -> None:
    (first, *_) = jobs()
    link, lasts_ns = first.plan.links[0], first.program.expected_ns or first.program.longest_ns

    def said(period_ns: int) -> list[str]:
        trace = TraceRows(period_ns=period_ns, rows=((0, 10**6, None, None, None), (10**6, 10**7, None, None, None)))
        traced = codec.replace(link, backward=codec.replace(link.backward, trace=trace))
        plan = codec.replace(first.plan, links=(traced, *first.plan.links[1:]))
        return list(reservation.needs([dataclasses.replace(first, plan=plan)], virtual=True).shorter)

    assert reservation.needs([first], virtual=True).shorter == {}
    assert said(lasts_ns) == []
    assert said(lasts_ns // 4) == [
        f"{link.name} backward: its trace of {Duration(lasts_ns // 4)} begins again, 4 times in all"
    ]
    assert said(0) == [f"{link.name} backward: its trace ends after 1ms, and its last row holds"]


def test_records_that_the_disk_cannot_hold_are_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(memory, "available", lambda place: 1 << 20)
    with pytest.raises(LabError, match=r"records would be written, and 1MB are free in .*: make room there"):
        reservation.disk(reservation.needs(jobs(), virtual=True), tmp_path)
