"""The page about scenarios, made from the models in `ewan.generator.scenario.fields`, `kinds` and `laws`.

Comes in: nothing. Goes out: Markdown with every key, its type, its meaning with the default, and an example.
"""

from __future__ import annotations

import textwrap
from typing import get_args

from ewan.generator import external
from ewan.generator.scenario import fields, kinds, laws, published
from ewan.labs.base.model import Model
from ewan.labs.link.keys import DirectionKeys
from ewan.labs.record.metrics import METRICS
from ewan.labs.spec.fields import Pacing
from ewan.labs.spec.manual import section

_INTRODUCTION = """# Scenarios

Made from the models in `generator/scenario/fields.py` and `kinds.py`; do not edit.

A scenario is a YAML file (`NAME.scenario.yaml`): a lab, what is sent over it and when, and the parameters that are
varied. `ewan run FILE` runs all of it; `ewan run NAME` takes `NAME.scenario.yaml` of the current directory, else that
of `labs/library`. Every number has its unit, unknown keys are refused, and all runs of a sweep are checked before the
first one starts: nodes, links, values, laws.

```yaml
name: streams
title: Do parallel streams fill a link better?
parameters: {pairs: 4, streams: 1}
sweep: {streams: [1, 2, 5]}            # a run for each, of each seed
seeds: 3
lab:
  topology: {dumbbell: {pairs: ${pairs}}}
  rtt: 20ms
  wan: {rate: 100Mbit/s}
scales:
  quick: {about: one seed, seeds: 1}   # ewan run FILE --size quick
steps:
  - name: forward
    from: left[1-${pairs}]
    to: right[1-${pairs}]
    offset: 1s                         # from one pair's start to the next's
    for: 30s
    streams: ${streams}
    congestion: bic
    bulk:
  - {name: calls, role: background, from: left1, to: right1, for: 30s, udp: {rate: 64kbit/s, size: 160B}}
events:
  - {at: 15s, link: core, delay: 40ms}
stop: {metric: mean completion time, within: 5%}
```

**Parameters.** `${name}` may stand anywhere but in keys and where values are given (`parameters`, `sweep`, `scales`,
`seeds`); `${seed}` is the run's seed. `--set streams=1,2` on the command line replaces a value, or the values of a
sweep. In a command of `run:`, write the shell's variables without braces (`$EWAN_OUT`); a parameter stands for words
there: `$`, `;`, `|` and the like in its value are plain characters, unless the command gives it to another shell.

**Sweep.** A group of parameters with lists of values stands for every combination. A list of groups runs one group
after the other: `[{streams: 1, buffer: 10pkt}, {streams: 2, buffer: [10pkt, 20pkt]}]` are three points.

**Nodes.** `left[1-10]`, `left[1,3-5]`, `left[11+5]` (five from 11 on), several with commas between, a list, or the
name of a role. `left[1-0]` and `left[11+0]` select no node, and a step without nodes is skipped. `from` and `to` go
together one by one; one node may stand on either side of many. A host with several links has an address at each:
`from: phone:lte` is a host at one of its links ([paths](../how-to/labs/paths.md)), and without a link at its first.

**When.** T0 is when everything is ready. A member starts at `at` plus the `offset`s of the members before it, and
again as `repeat` says. `at`, `offset` and `every` may be laws; they are drawn from the run's seed before it starts.
Where other tools' servers must listen first, or packets are captured, all of the schedule begins as much as 100 ms
later.

**One after the other.** A step with `after: first`, or `after: [first, second]`, starts when those steps have ended, in
either clock: the programs that send and run know it, and no process watches from outside. A step has
ended with the last of its members, of all rounds and streams, however they ended; a flow ends with its last byte at the
receiver, a command with its process. `at` counts from then: `{after: first, at: 2s}` leaves a pause. `after: none` is
T0 again, for sweeps.
Commands and flows may wait for each other; a circle is refused. What still waits when the run's time is over is an
error of its flow. A service with `ready: 4433` counts as ended for steps with `after` when a socket of TCP listens or
one of UDP is bound at that port in its node, which is looked for every millisecond; `at` counts from then.

**When a state comes.** A step or an event with `when: {flow: bulk, state: {mode: DRAIN}}` waits for the state of a
congestion control, in either clock: for the first look at which any sender of the step `bulk` (of its members, rounds
and streams) has all of `state`. `at` counts from then. Looks are at multiples of `every` from T0 on, from a flow's
start to its end: the moment is exact to that, and a state that comes and goes between two looks is not seen. Variables
are those of the columns `cc.NAME`, [by control](metrics.md), in their units; of a control of your own those of its
module, in the virtual clock. What the control has not is refused before the first run. Where the state does not come,
an event is not made, which the report says, and a flow that waits has an error. A change of a link with `when` is
checked against the link as the events without `when` leave it.

**Laws.** A plain `10ms` is constant; else `{exponential: {mean: 10ms}}` and so on, see below. The generator draws from
streams of its own for each flow, seeded by the run's seed and the flow's number: a flow added at the end changes none.

**Sizes** are payload bytes, in `B`, `kB`, `MB`, `GB`, `KiB` … or as volumes in bits, `30Gbit`. Durations are at most
a day.

**Other generators.** What a tool cannot do is refused; what it does not tell is empty in the tables.
"""

_SECTIONS: list[tuple[str, type[Model], str, type[Model] | None]] = [
    ("The scenario", fields.ScenarioDescription, "", None),
    ("`scales.NAME`", fields.Scale, "Keys that replace the scenario's own; `parameters` one by one.", None),
    (
        "`steps`",
        fields.ScenarioStep,
        "Each has exactly one of `bulk`, `bidirectional`, `arrivals`, `requests`, `udp`, `quic`, `messages`, `media` "
        "and `run`.",
        fields.Socket,
    ),
    ("Sockets: `defaults`, and each step", fields.Socket, "", None),
    (
        "`multipath`",
        fields.MultipathKeys,
        "Of our own generator, without `mss`, `window`, `nodelay`, `ecn` and `pacing`; see "
        "[paths](../how-to/labs/paths.md#flows-over-several-paths). `congestion` controls each path by itself.",
        None,
    ),
    (
        "`pacing`",
        Pacing,
        "`none`, `psp 400Mbit/s` (a kind and its rate, so that a sweep can go over them), or exactly one of `psp`, "
        "`tbf` and `fq` with its settings. Not of `messages` and `run`, whose hosts are paced in the lab; see "
        "[pacing](../how-to/labs/pacing.md).",
        None,
    ),
    (
        "`cc.NAME`",
        fields.OwnControl,
        "The source is compiled before the first run starts, and stands in each run's program.json; see "
        "[a congestion control of your own](../how-to/experiments/own-congestion-control.md).",
        None,
    ),
    (
        "`when`",
        fields.When,
        "Of a step or an event; see above, and [its use](../how-to/experiments/own-congestion-control.md).",
        None,
    ),
    ("`repeat`", fields.Repeat, "", None),
    (
        "`bulk` and `bidirectional`",
        kinds.Bulk,
        "`bulk: 30Gbit`, with only the volume, means the same. An application may limit the flow: `rate: 5Mbit/s` "
        "writes so much and no more, `chunk: 1MB` with `interval: 2s` a segment of video every two seconds. What TCP "
        "does not take at once is written as soon as it does, and what was due meanwhile follows. Of our own generator "
        "only, with one stream.",
        None,
    ),
    ("`arrivals`", kinds.Arrivals, "TCP connections, each of which sends its size and is closed.", None),
    ("`requests`", kinds.Requests, "", None),
    ("`udp`", kinds.Udp, "Each packet is due at an exact time, the sum of all intervals before it.", None),
    (
        "`quic`",
        kinds.Quic,
        "`quic: 20MB`, with only the volume, means the same. `streams` are connections, each with a socket and a "
        "congestion control of its own, and `window` is the most that the receiver lets be in flight on each, 64 MB if "
        "absent. `rate` to `off` are those of `bulk`. See [QUIC](../how-to/experiments/quic.md).",
        None,
    ),
    (
        "`http3`",
        kinds.Http3,
        "The server is at `from` and the client at `to`; each object is a row of the table `exchanges`.",
        None,
    ),
    ("`messages`", kinds.Messages, "", None),
    (
        "`media`",
        kinds.Media,
        "Over UDP, with reports of the receiver; see [interactive video](../how-to/experiments/media.md).",
        None,
    ),
    (
        "`events`",
        fields.EventKeys,
        "And the settings of a link, as `ewan lab set` takes them (not `framing`).",
        DirectionKeys,
    ),
    (
        "`capture`",
        fields.CaptureKeys,
        "Each packet comes twice: at its sender and at its receiver, if both are named.",
        None,
    ),
    ("`stop`", published.Stop, "", None),
    ("`normalise`", fields.Normalise, "", None),
    (
        "`compare`",
        fields.Compare,
        "Runs of the same seed against each other; docs/how-to/experiments/results.md says which test is made when.",
        None,
    ),
    ("`beside`", fields.PublishedKeys, "", None),
    ("Laws", laws.TimeLaw, "A plain constant, or exactly one of these.", None),
    ("`uniform`", laws.Uniform[laws.TimeText], "", None),
    ("`exponential`", laws.Exponential[laws.TimeText], "", None),
    ("`pareto`, `weibull`, `gamma`", laws.Shaped[laws.TimeText], "", None),
    ("`normal`", laws.Normal[laws.TimeText], "", None),
]


def markdown() -> str:
    """The whole page."""
    names = "\n".join(f"- `{name}`" for name in METRICS)
    what = "[what each is](metrics.md)"
    metrics = f"## Metrics\n\nFor `metrics`, `compare`, `stop` and `beside` ({what}):\n\n{names}\n"
    return "\n".join([_INTRODUCTION + _tools(), *(section(*each) for each in _SECTIONS), metrics])


def _tools() -> str:
    """A list of the external tools with what each can do."""
    libraries = get_args(kinds.Library)
    each = (
        f"`{'library' if tool.name in libraries else 'generator'}: {tool.name}` does {tool.about}"
        for tool in external.TOOLS.values()
    )
    return (
        "\n" + "\n".join(textwrap.fill(text, 118, initial_indent="- ", subsequent_indent="  ") for text in each) + "\n"
    )
