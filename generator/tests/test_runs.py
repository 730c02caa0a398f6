"""A scenario's runs: parameters, sweeps, scales, seeds, and words of the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from ewan.generator import scenario
from ewan.generator.tests.scenarios import FACTS, HEAD, SWEPT, flows, parse, planned
from ewan.labs import spec as specs
from ewan.labs.base import codec, reading
from ewan.labs.compile import compile as compile_spec
from ewan.labs.spec import DescriptionError
from ewan.labs.spec import load as read


def test_a_sweep_is_every_combination_of_each_seed_in_order() -> None:
    result = parse(
        HEAD
        + """
parameters: {streams: 1, congestion: cubic}
sweep: {streams: [1, 2], congestion: [reno, cubic]}
seeds: 2
steps: [{name: a, from: left1, to: right1, streams: "${streams}", congestion: "${congestion}", bulk: 1MB}]
"""
    )
    runs = result.runs()
    assert [run.number for run in runs] == list(range(1, 9))
    assert [run.name for run in runs][:3] == [
        "streams=1 congestion=reno seed=1",
        "streams=1 congestion=reno seed=2",
        "streams=1 congestion=cubic seed=1",
    ]
    assert runs[7].parameters == {"streams": 2, "congestion": "cubic"}
    assert [run.spec.description.seed for run in runs[:2]] == [1, 2]
    assert len(flows(planned(runs[7]))) == 2
    repeated = runs.of(runs[0].parameters, 9, 5)
    assert (repeated.number, repeated.name) == (9, "streams=1 congestion=reno seed=5")
    assert repeated.spec.description.seed == 5


def test_a_repetition_has_the_seed_of_its_own_in_its_steps() -> None:
    """A stop condition asks for further seeds; `${seed}` is the run's, not that of the point's first run."""
    runs = parse(HEAD + "seeds: 2\nsteps: [{name: a, on: left1, run: 'echo ${seed}'}]").runs()
    (command,) = planned(runs.of(runs[0].parameters, 3, 7)).program.commands
    assert command.argv[-1].endswith("echo 7") or command.argv[-1] == "7"


def test_groups_of_a_sweep_come_one_after_the_other() -> None:
    points = [(run.parameters["streams"], run.parameters["length"]) for run in parse(SWEPT).runs()]
    assert points == [(1, "5s"), (2, "10s"), (3, "10s")]


def test_a_scale_replaces_parameters_sweep_and_seeds() -> None:
    runs = parse(SWEPT).runs(scale="quick")
    assert [run.name for run in runs] == [
        "streams=1 seed=7", "streams=1 seed=9", "streams=4 seed=7", "streams=4 seed=9",
    ]  # fmt: skip
    assert {run.parameters["length"] for run in runs} == {"1s"}


def test_words_of_the_command_line_replace_values_and_sweeps() -> None:
    runs = parse(SWEPT).runs({"streams": "5,6", "length": "2s"}, seeds=2)
    assert [run.name for run in runs] == [
        f"streams={streams} length=2s seed={seed}" for streams in (5, 6) for seed in (1, 2)
    ]


def test_the_stop_condition_is_as_written_or_usual() -> None:
    stop = parse(SWEPT).stop_at("quick")
    assert stop == scenario.Stop(metric="mean goodput", within="5%", confidence="95%", at_least=3, at_most=20)


def test_without_seeds_a_lab_keeps_its_own() -> None:
    text = "lab: {topology: dumbbell, seed: 42}\nsteps: [{name: a, from: left1, to: right1, bulk: 1MB}]"
    assert [run.seed for run in parse(text).runs()] == [42]


def test_parameters_stand_within_braces_and_words_and_are_numbers_again() -> None:
    text = """
parameters: {pairs: 2, rate: 5, n: 1}
lab: {topology: {dumbbell: {pairs: ${pairs}}}, wan: {rate: ${rate}Mbit/s}}
steps:
  - {name: a, from: "left[1-${pairs}]", to: "right[1-${pairs}]", streams: ${n}, bulk: 1MB}
  - {name: b, on: left1, run: 'echo $EWAN_OUT ${seed} >/dev/null'}
"""
    (run,) = parse(text).runs()
    assert run.spec.description.topology.choice.pairs == 2
    assert planned(run).program.commands[0].argv == ("sh", "-c", "echo $EWAN_OUT 1 >/dev/null")


def test_a_sweep_reads_its_lab_once_and_tells_of_it_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "x.lab.yaml"
    file.write_text("topology: {dumbbell: {pairs: 1}}\nrtt: 20ms\nseed: 5\n")
    text = "lab: x.lab.yaml\nseeds: 4\nparameters: {n: 1}\nsweep: {n: [1, 2, 3]}\n"
    text += 'steps: [{name: a, from: left1, to: right1, streams: "${n}", bulk: 1MB}]\n'
    runs = scenario.parse(text, tmp_path / "x.scenario.yaml").runs()
    found: list[Path] = []

    def load(path: Path) -> specs.Spec:
        found.append(path)
        return read(path)

    monkeypatch.setattr(specs, "load", load)
    for _ in range(2):
        with reading.noted() as files:
            made = list(runs)
        assert [run.spec.description.seed for run in made] == [1, 2, 3, 4] * 3
        assert list(files) == [file]
    assert found == [file]
    assert {run.spec.raw["seed"] for run in made} == {"1", "2", "3", "4"}
    assert made[1].spec == specs.override(read(file), {"seed": "2"})


def test_a_lab_of_each_value_is_a_lab_of_its_own() -> None:
    text = 'lab: {topology: dumbbell, rtt: "${rtt}"}\nparameters: {rtt: 1ms}\nsweep: {rtt: [1ms, 2ms]}\n'
    runs = parse(text + "steps: [{name: a, from: left1, to: right1, bulk: 1MB}]\n").runs(seeds=2)
    assert [str(run.spec.description.rtt) for run in runs] == ["1ms", "1ms", "2ms", "2ms"]
    assert {run.seed for run in parse(text + "steps: [{name: a, from: left1, to: right1, bulk: 1B}]\n").runs()} == {1}


def test_a_sweep_goes_over_kernels() -> None:
    """The lab of each run has the kernel that the scenario names at its point; the default one stands in no plan."""
    text = HEAD + 'sweep: {k: [6.12, mine]}\nkernel: "${k}"\nsteps: [{name: a, from: left1, to: right1, bulk: 1kB}]'
    plans = [compile_spec(run.spec, FACTS) for run in parse(text).runs()]
    assert [None if plan.kernel is None else plan.kernel.name for plan in plans] == [None, "mine"]
    assert plans[0] == codec.replace(plans[1], kernel=None)
    with pytest.raises(DescriptionError, match=r'x\.scenario\.yaml:\d+: kernel "a b": write the name of a kernel'):
        parse(HEAD + "kernel: a b\nsteps: [{name: a, from: left1, to: right1, bulk: 1kB}]")
