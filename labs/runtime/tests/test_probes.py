"""Sending probes: what the node binary says comes through, one probe after the other."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from ewan.labs.runtime.probe_documents import DelayProbe, FailedResult, LossProbe, ProbeResult
from ewan.labs.runtime.probes import send

PROBES = DelayProbe("delay", (), 1), LossProbe("loss", (), 1)
EVENT = '{"event": "finished", "probe": "p", "index": 0, "of": 1, "elapsed_ns": 1}'
FINISHED = f"import sys; print({EVENT!r}, file=sys.stderr, flush=True)"
FAILED = '{"kind": "failed", "name": "p", "elapsed_ns": 1, "error": "no"}'
ANSWER = f'{{"format": "ewan-probe/1", "results": [{FAILED}]}}'

ANSWERS = """
import json, sys
for line in sys.stdin:
    request = json.loads(line)
    for probe in request["probes"]:
        event = {"probe": probe["name"], "index": 0, "of": 1}
        print(json.dumps({"event": "started", "longest_ns": 2_500_000_000, **event}), file=sys.stderr, flush=True)
        print(json.dumps({"event": "finished", "elapsed_ns": 1, **event}), file=sys.stderr, flush=True)
    failed = {"kind": "failed", "elapsed_ns": 1, "error": str(request["cpus"])}
    results = [{"name": probe["name"], **failed} for probe in request["probes"]]
    print(json.dumps({"format": "ewan-probe/1", "results": results}), flush=True)
"""


@pytest.fixture
def binary(tmp_path: Path) -> Callable[[str], Path]:
    """In place of the node binary."""

    def make(text: str) -> Path:
        path = tmp_path / "ewan-node"
        path.write_text(f"#!{sys.executable}\n{text}")
        path.chmod(0o755)
        return path

    return make


@pytest.mark.parametrize("at", [0, 1])
def test_an_error_of_the_binary_is_one_line(binary: Callable[[str], Path], at: int) -> None:
    fails = f"import sys\nfor _ in range({at}): input(); {FINISHED}; print({ANSWER!r}, flush=True)\n"
    fails += "input()\nprint('probe request: no', file=sys.stderr)\nsys.exit(2)\n"
    with pytest.raises(RuntimeError, match=r"^ewan-node probe: probe request: no$"):
        send(PROBES, [0], binary(fails), lambda text: None)


def test_one_that_ends_at_once_says_why(binary: Callable[[str], Path]) -> None:
    with pytest.raises(RuntimeError, match=r"^ewan-node probe: not here$"):
        send(PROBES, [0], binary("import sys\nsys.exit('not here')\n"), lambda text: None)


def test_one_that_takes_no_more_says_why(binary: Callable[[str], Path]) -> None:
    text = f"import os, sys\ninput(); os.close(0); {FINISHED}\n"
    text += f"print({ANSWER!r}, flush=True)\nsys.exit('no more')\n"
    with pytest.raises(RuntimeError, match=r"^ewan-node probe: no more$"):
        send(PROBES, [0], binary(text), lambda text: None)


def test_an_answer_of_another_kind_is_one_line(binary: Callable[[str], Path]) -> None:
    text = f"import sys\ninput(); {FINISHED}\nprint('{{}}', flush=True)\n"
    with pytest.raises(RuntimeError, match=r"^ewan-node probe: answer has no key 'format'$"):
        send(PROBES, [0], binary(text), lambda text: None)


def test_each_probe_is_named_when_it_begins(binary: Callable[[str], Path]) -> None:
    told: list[str] = []
    answer = send(PROBES, [0, 2], binary(ANSWERS), told.append)
    assert answer.results == tuple(FailedResult(each.name, 1, "[0, 2]") for each in PROBES)
    assert told == ["probe 1 of 2: delay (up to 2.5 s)", "probe 2 of 2: loss (up to 2.5 s)"]


def test_results_are_told_before_the_next_probe_begins(binary: Callable[[str], Path], tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    text = ANSWERS.replace("    request = ", f"    open({str(begun)!r}, 'a').write(line); request = ")
    seen: list[tuple[list[str], int]] = []

    def look(results: Sequence[ProbeResult]) -> None:
        names = [json.loads(line)["probes"][0]["name"] for line in begun.read_text().splitlines()]
        seen.append(([each.name for each in results], len(names)))

    send(PROBES, [0], binary(text), lambda text: None, look)
    assert seen == [(["delay"], 1), (["delay", "loss"], 2)]


def test_who_is_told_can_end_it(binary: Callable[[str], Path]) -> None:
    """As Ctrl-C does, which comes while a line is shown."""

    def interrupt(line: str) -> None:
        if "probe 2" in line:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        send(PROBES, [0], binary(ANSWERS), interrupt)
