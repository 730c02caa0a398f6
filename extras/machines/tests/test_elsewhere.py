"""Machines of a lab that stretches over several: this machine and another one see the same."""

from __future__ import annotations

import os
import subprocess

import pytest

from ewan.calibration import elsewhere, machine, report
from ewan.extras.machines.facts import sections
from ewan.extras.machines.inventory import FILES
from ewan.labs.base.codec import replace
from ewan.labs.base.product import ROOT
from ewan.labs.base.units import NS_PER_SECOND
from ewan.labs.record import Certificate, from_json, host_facts, to_json
from ewan.labs.runtime.base import RemoteMachine
from ewan.labs.runtime.spinner_stats import Gaps, SpinnerStats


def told(share: str = "/run/ewan-shares/none") -> RemoteMachine:
    done = subprocess.run(["sh", "-c", FILES, "sh", share], capture_output=True, text=True, errors="replace")
    return RemoteMachine((0,), (0, 2), sections(done.stdout))


@pytest.fixture(scope="module")
def certificate() -> Certificate:
    host = host_facts({"ewan-node": "1"})
    return Certificate("0" * 64, "x", "2026-01-01T00:00:00+00:00", host, {}, (), {}, {}, 0)


def test_a_machine_is_what_it_itself_finds() -> None:
    assert elsewhere.facts_of(told().files) == replace(host_facts({}), versions={})


def test_its_load_is_without_the_labs_processes_and_kernel_threads() -> None:
    busy = ["sh", "-c", "while :; do :; done", "/run/ewan-shares/loaded"]
    with subprocess.Popen(busy) as own, subprocess.Popen(busy[:3]) as other:
        try:
            files = told("/run/ewan-shares/loaded").files
        finally:
            own.kill()
            other.kill()
    seen = elsewhere._snapshot(files)
    here = machine.snapshot("none")
    numbers = {number for number, _ in seen.processes}
    assert other.pid in numbers and own.pid not in numbers and os.getpid() in numbers and 2 not in numbers
    assert seen.clock_source == here.clock_source and 0 < seen.ticks <= here.ticks


def test_shares_of_a_cpu_are_of_the_time_that_passed_there() -> None:
    """However soon after one another both come here: one CPU of two was taken for 5 s of 10."""
    program = "7 (tcpdump) S 1 7 7 0 -1 0 0 0 0 0 {ticks} 0 0 0 20 0 1 0 100 0"
    each = {"loadavg": "1.0 0 0 1/1 1", "clocksource": "tsc", "lab": "", "uname": "6.1 x86_64", "cpuinfo": ""}

    def then(ticks: int, idle: int) -> RemoteMachine:
        stat = f"cpu  {ticks} 0 0 {idle} 0 0 0 0\ncpu0 0 0 0 0 0 0 0 0\ncpu1 0 0 0 0 0 0 0 0\n"
        return RemoteMachine((), (), each | {"stat": stat, "processes": program.format(ticks=ticks)})

    hz = os.sysconf("SC_CLK_TCK")
    _, load = elsewhere.measured({"two": then(0, 0)}, {"two": then(5 * hz, 15 * hz)}, ([], []))["two"]
    assert load.programs == (("tcpdump", 0.5),)


def test_a_certificate_has_each_machine_and_says_that_the_coordinator_is_none(certificate: Certificate) -> None:
    taken = SpinnerStats(cpu=3, shared=False, gaps=Gaps(classes=((10**9, 1),), lost_ns=NS_PER_SECOND), links={})
    idle = SpinnerStats(cpu=3, shared=False, gaps=Gaps(), links={})
    before, after = told(), told()
    found = elsewhere.measured({"two": before}, {"two": after}, ([idle], [taken]))
    each, load = found["two"]
    assert (each.link_cpus, each.host_cpus) == ((3,), (0, 2))
    assert each.load.disturbed == tuple(load.words()) and "CPU 3: the links' thread was interrupted" in load.words()[0]
    whole = replace(certificate, machines={"two": each})
    assert to_json(from_json(to_json(whole))) == to_json(whole)
    lines = report.circumstances(whole)
    assert f"two: kernel {host_facts({}).kernel}" in lines[1] and "; links on CPU 3, nodes on 0, 2" in lines[1]
    assert lines[2].startswith("asked from a machine on which nothing is emulated: kernel ")


def test_a_certificate_of_one_machine_is_as_it_was(certificate: Certificate) -> None:
    assert b'"machines"' not in to_json(certificate)
    assert "machine: kernel " in report.circumstances(certificate)[1]
    published = (ROOT / "docs/reference/certificate.schema.json").read_text()
    assert '"machines"' in published
