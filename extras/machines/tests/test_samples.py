"""Samples of several machines: a machine that does not answer is reported, and delays no other."""

from __future__ import annotations

import threading
import time

import pytest

from ewan.extras.machines import samples
from ewan.labs import spec
from ewan.labs.compile import HostFacts, compile
from ewan.labs.runtime.base import LabError


def test_a_machine_that_hangs_or_fails_is_silent_and_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(samples, "ANSWER_S", 0.2)
    plan = compile(spec.from_template("star", {"arms": "3", "rtt": "20ms"}), HostFacts((0, 1), ()))
    machine_of = {link.name: name for link, name in zip(plan.links, ("one", "two", "three"), strict=True)}
    answers, asked = threading.Event(), []

    def ask(machine: str) -> dict[str, str]:
        asked.append(machine)
        if machine == "two" and not answers.wait(10):
            raise AssertionError
        if machine == "three":
            raise LabError("machine three: the connection was lost")
        return {"ewan_up": f'ewan_up{{machine="{machine}"}} 1\n'}

    with samples.asking(plan, machine_of, ask) as asking:
        for _ in range(2):
            begun = time.monotonic()
            told = asking.now()
            assert time.monotonic() - begun < 2
            assert told.samples == ({"ewan_up": 'ewan_up{machine="one"} 1\n'},)
            assert [(each["machine"], each["lab"], each["backend"]) for each in told.silent] == [
                ("two", "star", "user"),
                ("three", "star", "user"),
            ]
        assert sorted(asked) == ["one", "one", "three", "three", "two"], "who has not answered is not asked again"
        answers.set()
        told = asking.now()
        assert len(told.samples) == 2 and [each["machine"] for each in told.silent] == ["three"]
