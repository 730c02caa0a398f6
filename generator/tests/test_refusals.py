"""Mistakes in a scenario are refused in one line with file and line."""

from __future__ import annotations

from pathlib import Path

import pytest

from ewan.generator import scenario
from ewan.generator.scenario import DescriptionError
from ewan.generator.tests.scenarios import HEAD, SWEPT, check

STEP = "{name: a, from: left1, to: right1, bulk: 1MB}"
TWO = "sweep: {cc: [reno, bic]}\nparameters: {cc: reno}"
REFUSED = [
    # a step's own words
    ("steps: [{name: a, from: left1, to: right1, bluk: 1MB}]", '2: steps[0].bluk "1MB": unknown key of a step'),
    ("steps: [{name: a, from: left1, to: right1}]", "2: steps[0]: write exactly one of bulk, bidirectional"),
    ("steps: [{name: a, to: right1, bulk: 1MB}]", '2: steps[0].from: is missing: write "from:" too'),
    ("steps: [{name: a, from: left1, to: right1, bulk: }]", '2: steps[0].bulk "": never ends: write its volume'),
    ("steps: [{name: a, from: left1, to: right1, bulk: 0MB}]", 'steps[0].bulk "0MB": is nothing: write a volume'),
    ("steps: [{name: a, from: left1, to: right1, bulk: {volume: 1MB, chunk: 1kB}}]", 'one of "rate:" and "interval:"'),
    ("steps: [{name: a, from: left1, to: right1, bulk: {volume: 1MB, interval: 1s}}]", "bulk.chunk: is missing: write"),
    ("steps: [{name: a, from: left1, to: right1, bulk: {volume: 1MB, rate: 1M, on: 1s}}]", 'both "on:" and "off:"'),
    ("steps: [{name: a, from: left1, to: right1, bulk: {volume: 1MB, rate: 1G, chunk: 1B}}]", "million times a second"),
    ("steps: [{name: a, from: left1, to: right1, bulk: {volume: 1MB, rate: 1M, chunk: 0B}}]", 'bulk.chunk "0B": is 0'),
    ("steps: [{name: a, from: left1, to: right1, streams: 2, bulk: {volume: 1MB, rate: 1M}}]", "one application"),
    ("steps: [{name: a, from: left1, to: right1, generator: iperf3, bulk: {volume: 1MB, rate: 1M}}]", "as fast as TCP"),
    ("steps: [{name: a, from: left1, to: right1, bulk: 100}]", 'write a volume as "100MB" or "100Gbit"'),
    ("steps: [{name: a, at: 5, from: left1, to: right1, bulk: 1MB}]", 'write a duration as "5ms"'),
    ("steps: [{name: a, from: left7, to: right1, bulk: 1MB}]", '2: steps[0].from "left7": there is no node left7'),
    ("steps: [{name: a, from: core, to: right1, bulk: 1MB}]", 'steps[0].from "core": there is no node core'),
    ('steps: [{name: a, from: "left[1-3]", to: "right[1-2]", bulk: 1MB}]', "3 send to 2: write as many as send"),
    ('steps: [{name: a, from: "left[1-2]", to: "right[1-0]", bulk: 1MB}]', "2 send to 0: write as many as send"),
    ("steps: [{name: a, from: left1, to: left1, bulk: 1MB}]", "left1 sends to itself: write another node"),
    ('steps: [{name: a, from: "left1,left1", to: "right1,right1", bulk: 1MB}]', "left1 sends to right1 twice"),
    ("steps: [{name: a, from: left1, to: right1, streams: 0, bulk: 1MB}]", "write a whole number from 1 to 1000"),
    ("steps: [{name: a, from: left1, to: right1, streams: 3, bulk: 2B}]", "is less than a byte for each of 3 streams"),
    ("steps: [{name: a, from: left1, to: right1, window: 10B, bulk: 1MB}]", "sockets take 1.152kB to"),
    ("steps: [{name: a, from: left1, to: right1, congestion: Bad Name, bulk: 1MB}]", "kernel's name of a congestion"),
    ("steps: [{name: a, from: left1, to: right1, for: 1s, congestion: reno, udp: {rate: 1M, size: 1kB}}]",
     "2: steps[0].congestion \"reno\": a step of kind udp has none: leave it out"),
    ("steps: [{name: a, from: left1, to: right1, for: 1s, udp: {size: 1kB}}]", 'write one of "rate:" and "interval:"'),
    ("steps: [{name: a, from: left1, to: right1, udp: {rate: 1M, size: 1kB}}]", 'never ends: write a "count:"'),
    ("steps: [{name: a, from: left1, to: right1, for: 1s, udp: {rate: 1M, size: 10B}}]", "a packet holds 24 to 65507"),
    ("steps: [{name: a, from: left1, to: right1, for: 1s, udp: {rate: 1M, size: 1kB, on: 1s}}]", '"on:" and "off:"'),
    ("steps: [{name: a, from: left1, to: right1, arrivals: {count: 2, interval: 0s, size: 1kB}}]", "is 0: write more"),
    *((f"steps: [{{name: a, from: left1, to: right1, for: 9s, media: {keys}}}]", said) for keys, said in [
        ("{control: nada}", "2: steps[0].media.control \"nada\": write \"none\", \"gcc\" or \"scream\""),
        ("{rate: 3Mbit/s}", '2: steps[0].media.rate "3Mbit/s": is 3Mbit/s, and most is 2.5Mbit/s: write no more'),
        ("{rate: 100kbit/s}", "steps[0].media.least: is 150kbit/s, and rate is 100kbit/s: write no more than that"),
        ("{pause: {at: 1s, for: 1999ms}}", 'steps[0].media.pause.for "1999ms": is less than 2s: write a longer pause'),
        ("{most: 2Gbit/s}", 'steps[0].media.most "2Gbit/s": a source makes at most 1Gbit/s'),
        ("{fps: 0}", "write a whole number from 1 to 240"),
        ("{packet: 100B}", 'steps[0].media.packet "100B": is 100B: write 200B to 65507B'),
        ("{keyframe: 0s}", 'steps[0].media.keyframe "0s": is 0'),
        ("{l4s: true}", 'steps[0].media.l4s "true": control "gcc" knows no marks: leave it out, or write "control:'),
    ]),
    ("steps: [{name: a, from: left1, to: right1, media: }]", 'steps[0].media "": never ends: write how long, "for'),
    ("steps: [{name: a, from: left1, to: right1, for: 9s, congestion: bbr, media: }]", "a step of kind media has none"),
    ("steps: [{name: a, from: left1, to: right1, for: 9s, ecn: true, media: }]", "steps[0].ecn \"true\": control"),
    ("steps: [{name: a, from: left1, to: right1, for: 9s, ecn: true, media: {control: scream, l4s: true}}]",
     "packets with l4s are ECT(1), with ecn ECT(0)"),
    ("steps: [{name: a, from: left1, to: right1, for: 9s, generator: iperf3, media: }]", "iperf3 knows no media"),
    ("steps: [{name: a, from: left1, to: right1, arrivals: {count: 2, interval: {parto: {mean: 1s}}, size: 1kB}}]",
     "steps[0].arrivals.interval"),
    ("steps: [{name: a, ranks: left1, messages: {pattern: barrier, iterations: 2}}]", "is a single node: write"),
    ("steps: [{name: a, ranks: 'left[1-3]', messages: {pattern: ping-pong, iterations: 2, size: 1kB}}]", "are 3, and"),
    ("steps: [{name: a, ranks: 'left[1-2]', messages: {pattern: ring, iterations: 2, size: 1B}}]", 'write "ping-pong"'),
    ("steps: [{name: a, on: left1, run: 'ping \"x'}]", "no closing quotation: close the quotes"),
    ("steps: [{name: a, on: left1, for: 2s, run: ping}]", "steps[0].for \"2s\": a step of kind run has none"),
    (f"steps: [{STEP}, {STEP}]", "two steps are called a: write another name"),
    ("steps: []", "has no steps: write at least one"),
    ('steps: [{name: a, on: left1, run: ""}]', "is empty: write some text"),
    ('steps: [{name: a, from: "left[1-0]", to: "right[1-0]", bulk: 1MB}]', "nothing is sent"),
    (f"longest: 10s\nsteps: [{STEP[:-1]}, at: 10s}}]", '3: steps[0].at "10s": its last member starts at 10s, and all'),
    # other generators
    ("steps: [{name: a, generator: iperf3, from: left1, to: right1, requests: {count: 2, request: 1B, response: 1B}}]",
     'iperf3 knows no requests: write "generator: ewan"'),
    ("steps: [{name: a, generator: iperf3, from: left1, to: right1, for: 1.5s, bulk: }]", "iperf3 counts whole"),
    ("steps: [{name: a, generator: iperf3, from: left1, to: right1, ecn: true, bulk: 1MB}]", "iperf3 does not set ECN"),
    ("steps: [{name: a, generator: ditg, from: left1, to: right1, bulk: 1MB}]", "ditg does not read what"),
    ("steps: [{name: a, generator: ditg, from: left1, to: right1, for: 1s, "
     "udp: {size: 1kB, interval: {weibull: {mean: 1ms, shape: 2}}}}]", "ditg has no weibull law that holds"),
    # events
    (f"steps: [{STEP}]\nevents: [{{at: 1s, link: cor, delay: 1ms}}]", '3: events[0].link "cor": is no emulated link'),
    (f"steps: [{STEP}]\nevents: [{{at: 1s, link: access-left1, rate: 1Mbit/s}}]", "is no emulated link"),
    (f"steps: [{STEP}]\nevents: [{{at: 1s, link: core}}]", "3: events[0]: changes nothing"),
    (f"steps: [{STEP}]\nevents: [{{at: 1s, link: core, delay: 5}}]", 'events[0].delay "5": write a duration as "5ms"'),
    (f"steps: [{STEP}]\nevents: [{{at: 1s, link: core, framing: ip}}]", "does not change while a lab runs"),
    (f"steps: [{STEP}]\nevents: [{{at: 1s, link: core, delay: 9s}}]", "would hold"),
    (f"steps: [{STEP}]\nevents: [{{link: core, down: true}}]", 'events[0].at: is missing: write "at:" or "when:" too'),
    # states that are waited for
    *((f"steps: [{STEP[:-1]}, congestion: bbr}}]\nevents: [{{when: {when}, link: core, down: true}}]", said)
      for when, said in [
          ("{flow: b, state: {mode: DRAIN}}", '3: events[0].when.flow "b": there is no such step, write one of a'),
          ("{flow: a, state: {}}", "events[0].when.state"),
          ("{flow: a, state: {modus: DRAIN}}", 'the state of bbr has no modus, write "mode"'),
          ("{flow: a, state: {rounds: 1}}", "write one of bw_bps, min_rtt_ns, pacing_gain, cwnd_gain, mode"),
          ("{flow: a, state: {mode: DRIAN}}", 'mode of bbr is a word, write "DRAIN"'),
          ("{flow: a, state: {mode: 1}}", "mode of bbr is a word, write one of STARTUP, DRAIN, PROBE_BW, PROBE_RTT"),
          ("{flow: a, state: {bw_bps: DRAIN}}", "bw_bps of bbr is a number: write one"),
          ('{flow: a, state: {mode: ">= DRAIN"}}', "mode: a word is neither more nor less than another"),
          ('{flow: a, state: {mode: "~ 1"}}', 'mode: write a word, a number, or a comparison, like DRAIN, 2 or ">= 2"'),
          ("{flow: a, state: {mode: DRAIN}, every: 1us}", 'is too short: write at least "100us"'),
      ]),
    (f"steps: [{STEP}]\nevents: [{{when: {{flow: a, state: {{mode: DRAIN}}}}, link: core, down: true}}]",
     "no kernel tells the state of cubic: write a step with one of bbr"),
    (f"steps: [{STEP}, {{name: b, from: left1, to: right1, for: 1s, udp: {{rate: 1M, size: 1kB}}}}]\n"
     "events: [{when: {flow: b, state: {mode: DRAIN}}, link: core, down: true}]",
     "a step of kind udp has no congestion control"),
    (f"steps: [{STEP[:-1]}, congestion: bbr, after: b}}, "
     "{name: b, when: {flow: a, state: {mode: DRAIN}}, from: left1, to: right1, bulk: 1B}]",
     "a after b after a: a circle"),
    (f"steps: [{STEP[:-1]}, congestion: bbr, when: {{flow: a, state: {{mode: DRAIN}}}}}}]", "a waits for itself"),
    (f"longest: 5s\nsteps: [{STEP}]\nevents: [{{at: 6s, link: core, delay: 1ms}}]", "4: events[0].at"),
    # parameters
    (f"sweep: {{streams: [1, 2]}}\nsteps: [{STEP}]", 'write it into "parameters:" too'),
    (f"parameters: {{streams: 1}}\nsweep: {{streams: []}}\nsteps: [{STEP}]", "3: sweep.streams: is empty"),
    (f"sweep: []\nsteps: [{STEP}]", "2: sweep: is empty"),
    (f"parameters: {{a: [1]}}\nsteps: [{STEP}]", "2: parameters.a: is one value: write a word or a number"),
    (f"parameters: {{seed: 1}}\nsteps: [{STEP}]", "is always there: write another name"),
    ('steps: [{name: a, from: left1, to: right1, bulk: "${volum}"}]', "2: steps[0].bulk: ${volum}: unknown parameter"),
    ("parameters: {volume: 1MB}\nsteps: [{name: a, from: left1, to: right1, bulk: ${volum}}]", 'write "volume"'),
    ("parameters: {n: nine}\nsteps: [{name: a, from: left1, to: right1, streams: ${n}, bulk: 1MB}]",
     '3: steps[0].streams ${n} "nine": write a whole number'),
    (f"parameters: {{a: ${{b}}}}\nsteps: [{STEP}]", "is used where values are given: write the value"),
    (f"seeds: 0\nsteps: [{STEP}]", '2: seeds "0": write a whole number from 1'),
    (f"seeds: [1, 1]\nsteps: [{STEP}]", "write seeds that differ"),
    # the rest
    (f"stop: {{metric: speed, within: 5%}}\nsteps: [{STEP}]", '2: stop.metric "speed": unknown metric, write one of'),
    (
        f"stop: {{metric: mean response time, within: 5%}}\nsteps: [{STEP}]",
        '2: stop.metric "mean response time": is of steps with "requests:", and there is none',
    ),
    (f"stop: {{metric: mean goodput, within: 0%}}\nsteps: [{STEP}]", "no number of repetitions gets there"),
    (f"compare: [{{by: congestion, to: reno}}]\nsteps: [{STEP}]", '2: compare[0].by "congestion": unknown parameter'),
    (f"parameters: {{cc: reno}}\ncompare: [{{by: cc, to: reno}}]\nsteps: [{STEP}]",
     '3: compare[0].by "cc": has one value'),
    (f"{TWO}\ncompare: [{{by: cc, to: rno}}]\nsteps: [{STEP}]",
     '4: compare[0].to "rno": no run has it, write "reno"'),
    (f"{TWO}\ncompare: [{{by: cc, to: reno, harm: true, metrics: [marks]}}]\n"
     f"steps: [{STEP}]", '4: compare[0].metrics[0] "marks": neither more nor less of it is better'),
    (f"{TWO}\ncompare: [{{by: cc, to: reno, metrics: [share of b]}}]\n"
     f"steps: [{STEP}]", '4: compare[0].metrics[0] "share of b": there is no such step or role'),
    (f"normalise: {{by: congestion, to: reno}}\nsteps: [{STEP}]", '2: normalise.by "congestion": unknown parameter'),
    (f"beside: [{{source: x, when: {{streams: 1}}, metric: mean goodput, value: 1}}]\nsteps: [{STEP}]", "when.streams"),
    (f"metrics: [reordering of load]\nsteps: [{STEP}]", '"reordering of load": is of captured packets: write'),
    (f"figures: [cdf of one-way delay]\nsteps: [{STEP}]", '"cdf of one-way delay": is of captured packets'),
    (f"stop: {{metric: largest burst, within: 5%}}\nsteps: [{STEP}]", 'stop.metric "largest burst": is of captured'),
    (f"metrics: [loss]\nsteps: [{STEP}]", "write queue loss, link loss or total loss"),
    (f"metrics: [fairness]\nsteps: [{STEP}]", "write fairness per flow or fairness per source"),
    (f"beside: [{{source: x, metric: fairness per flow, value: good}}]\nsteps: [{STEP}]", "write a value like"),
    (f"sample: 10us\nsteps: [{STEP}]", 'is too short: write at least "100us"'),
    (f"stpes: [{STEP}]", '2: stpes: unknown key, write "steps"'),
    (f"scales: {{quick: {{volume: 1MB}}}}\nsteps: [{STEP}]", '2: scales.quick.volume "1MB": unknown key of a scale'),
]  # fmt: skip


@pytest.mark.parametrize(("text", "said"), REFUSED, ids=[said for _, said in REFUSED])
def test_what_is_wrong_is_refused_in_one_line_with_its_place(text: str, said: str) -> None:
    with pytest.raises(DescriptionError) as refused:
        check(HEAD + text + "\n")
    line = str(refused.value)
    assert said in line
    assert line.startswith("x.scenario.yaml:")
    assert "\n" not in line
    assert "\ue000" not in line


def test_a_mistake_in_any_run_of_a_sweep_is_found_before_the_first_one() -> None:
    text = HEAD + (
        'parameters: {pairs: 1}\nsweep: {pairs: [1, 2, 99]}\nsteps: [{name: a, from: "left[1-${pairs}]", '
        'to: "right[1-${pairs}]", bulk: 1MB}]'
    )
    with pytest.raises(
        DescriptionError, match=r'^x.scenario.yaml:4: steps\[0\].from left\[1-\$\{pairs\}\] "left\[1-99\]": .*left6'
    ):
        check(text)


def test_a_mistake_in_the_lab_is_shown_where_it_is_written() -> None:
    text = "parameters: {rtt: 20ms}\nlab:\n  topology: dumbbell\n  rtt: ${rtt}\n  wann: {}\n" + f"steps: [{STEP}]"
    with pytest.raises(DescriptionError, match=r'^x.scenario.yaml:5: lab.wann: unknown key, write "wan"'):
        check(text)
    with pytest.raises(DescriptionError, match=r'^x.scenario.yaml:4: lab.rtt \$\{rtt\} "20": write a duration'):
        check(text.replace("wann", "wan"), {"rtt": "20"})


@pytest.mark.parametrize(
    ("settings", "scale", "said"),
    [
        ({"strems": "2"}, None, '--set strems=2: unknown parameter, write "streams"'),
        ({"streams": ""}, None, "--set streams=: is empty"),
        ({}, "quik", '--size "quik": unknown size, write "quick"'),
    ],
)
def test_words_of_the_command_line_are_refused_as_such(settings: dict[str, str], scale: str | None, said: str) -> None:
    with pytest.raises(DescriptionError) as refused:
        check(SWEPT, settings, scale)
    assert str(refused.value).startswith(said)


def test_a_lab_may_be_named_or_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "own.lab.yaml").write_text("topology: {star: {arms: 3}}\nrtt: 10ms\n")
    steps = "steps: [{name: a, from: host1, to: host2, bulk: 1MB}]"
    for lab, name in (("own.lab.yaml", "own"), ("star", "star")):
        (tmp_path / "s.scenario.yaml").write_text(f"lab: {lab}\n{steps}\n")
        (run,) = scenario.load(tmp_path / "s.scenario.yaml").runs()
        assert run.spec.description.name == name
    for lab, said in (("other.lab.yaml", "there is no such file"), ("strr", 'there is no such lab, write "star"')):
        with pytest.raises(DescriptionError, match=f"^x.scenario.yaml:1: lab .*{said}"):
            check(f"lab: {lab}\n{steps}\n")


def test_a_scenario_that_is_not_there_is_refused() -> None:
    with pytest.raises(DescriptionError, match=r'^paralel-streams: there .* write "parallel-streams"'):
        scenario.load("paralel-streams")
    with pytest.raises(DescriptionError, match=r"^no/such.scenario.yaml: No such file"):
        scenario.load("no/such.scenario.yaml")
