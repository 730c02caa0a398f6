"""Scenarios of a comparison: small ones, which together have every kind of step, event, table and figure."""

from __future__ import annotations

SCENARIOS = {
    "streams": """\
title: Do parallel streams fill a link better?
parameters: {pairs: 2, streams: 1}
sweep: {streams: [1, 2, 4], congestion: [cubic, reno]}
seeds: 2
lab:
  topology: {dumbbell: {pairs: "${pairs}"}}
  rtt: 20ms
  wan: {rate: 20Mbit/s, buffer: 50pkt}
steps:
  - {name: forward, from: "left[1-${pairs}]", to: "right[1-${pairs}]", offset: 200ms, for: 3s, streams: "${streams}",
     congestion: "${congestion}", bulk: }
  - {name: calls, role: background, from: left1, to: right1, for: 3s, udp: {rate: 64kbit/s, size: 160B}}
events:
  - {at: 1500ms, link: core, delay: 30ms}
normalise: {by: congestion, to: reno}
compare: [{by: congestion, to: reno, metrics: [aggregate goodput, mean rtt]}]
beside:
  - {source: "a paper, table 1", when: {streams: 1}, metric: aggregate goodput, value: 18Mbit/s}
  - {source: "a paper, table 2", when: {streams: 4}, than: {streams: 1}, metric: aggregate goodput, value: 2.5%}
metrics: [aggregate goodput, fairness per flow, mean rtt, utilisation, queueing delay p95, retransmissions]
figures:
  - aggregate goodput by streams, lines congestion
  - cdf of rtt, lines congestion
""",
    "queues": """\
title: Which queue holds the delay?
sweep: {queue: [drop-tail, codel, pie, red, fq-codel, dualpi2, sfq, drr], ecn: [true]}
lab:
  topology: {dumbbell: {pairs: 2}}
  rtt: 40ms
  wan: {rate: 20Mbit/s, buffer: 100pkt, queue: "${queue}"}
parameters: {queue: codel, ecn: true}
steps:
  - {name: own, from: left1, to: right1, for: 3s, congestion: cubic, ecn: "${ecn}", bulk: }
  - {name: other, role: cross, at: 500ms, from: left2, to: right2, for: 2s, congestion: dctcp, ecn: "${ecn}", bulk: 1MB}
""",
    "laws": """\
title: Random traffic of every law
seeds: 2
roles: {clients: "left[1-3]", servers: "right[1-3]"}
lab: {topology: {dumbbell: {pairs: 3}}, rtt: 30ms, wan: {rate: 50Mbit/s, buffer: 200pkt, loss: 0.1%}}
defaults: {congestion: reno, nodelay: true}
steps:
  - {name: short, from: left1, to: right1, for: 3s, arrivals: {interval: {exponential: {mean: 100ms}},
     size: {pareto: {mean: 50kB, shape: 1.3, most: 500kB}}}}
  - {name: web, role: background, from: left2, to: right2, for: 3s, requests: {request: 300B,
     response: {weibull: {mean: 12kB, shape: 0.7}}, think: {exponential: {mean: 200ms}}, new_connection: false}}
  - {name: voice, role: background, from: left3, to: right3, for: 3s, udp: {size: {uniform: {low: 100B, high: 900B}},
     interval: {gamma: {mean: 5ms, shape: 2}}, on: {exponential: {mean: 500ms}}, off: {constant: 100ms}}}
  - {name: back, role: reverse, at: {normal: {mean: 300ms, deviation: 50ms}}, from: right1, to: left1, for: 2s, bulk: }
  - {name: both, after: [short, back], from: left2, to: right2, bidirectional: 500kB}
""",
    "messages": """\
title: Ranks that compute and exchange
sweep: {pattern: [ping-pong, all-to-all, neighbour-exchange]}
parameters: {pattern: ping-pong}
lab: {topology: {star: {arms: 4}}, rtt: 10ms, wan: {rate: 100Mbit/s}}
steps:
  - {name: ranks, ranks: "host[1-4]", messages: {pattern: "${pattern}", iterations: 10, size: 10kB, compute: 1ms}}
  - {name: barrier, after: ranks, ranks: "host[1-4]", messages: {pattern: barrier, iterations: 5}}
""",
    "commands": """\
title: Programs of one's own beside flows
seeds: [7, 8]
lab: {topology: {dumbbell: {pairs: 2}}, rtt: 50ms, wan: {rate: 10Mbit/s, buffer: 50pkt}, ip: 4}
capture: [{node: [left1, right1], for: 2s}, {point: "core:forward"}]
steps:
  - {name: pings, on: left1, run: "ping -c 10 -i 0.2 right1"}
  - {name: load, at: 500ms, from: left2, to: right2, for: 2s, congestion: bbr, bulk: }
  - {name: later, after: pings, on: left2, run: 'echo done in $EWAN_OUT; ls /proc/self > /dev/null'}
events:
  - {at: 1s, link: core, direction: forward, loss: 10%, rate: 5Mbit/s}
  - {at: 1300ms, link: core, down: true}
  - {at: 1600ms, link: core, up: true}
""",
    "repeated": """\
title: Until the mean is known
stop: {metric: mean completion time, within: 20%, at_least: 2, at_most: 4}
lab: {topology: {parking-lot: {hops: 3, cross_pairs: 1}}, rtt: 30ms, wan: {rate: 20Mbit/s, loss: 1%}, ip: 6}
steps:
  - {name: long, from: left1, to: right1, bulk: 500kB, send_buffer: 4MB, receive_buffer: 4MB, dscp: 10, mss: 1000}
  - {name: short, role: cross, from: in1-1, to: out1-1, bulk: 200kB, repeat: {times: 3, every: 300ms}}
""",
    "paced": """\
title: Paced sources with stacks of their own
sweep: [{pacing: "psp 4Mbit/s"}, {pacing: "tbf 4Mbit/s"}, {pacing: "fq 4Mbit/s"}, {pacing: none}]
parameters: {pacing: none}
lab:
  topology: {dumbbell: {pairs: 2}}
  rtt: 20ms
  wan: {rate: 8Mbit/s, buffer: 20pkt}
  hosts: {left1: {stack: windows-xp}}
steps:
  - {name: paced, from: "left[1-2]", to: "right[1-2]", for: 3s, pacing: "${pacing}", window: 64KiB, bulk: }
compare: [{by: pacing, to: none, harm: true}]
""",
    "radio": """\
title: Links as radios have them
sweep: {link: [1, 2, 3]}
parameters: {link: 1}
lab:
  topology:
    graph:
      hosts: [a, b]
      routers: [r]
      links:
        - {between: [a, r], delay: 5ms}
        - {between: [r, b], delay: 10ms}
  wan: {rate: 20Mbit/s, buffer: 60pkt}
  access: {rate: 30Mbit/s, harq: {errors: 10%, round: 8ms}, slot: 1ms, aggregate: {packets: 8, gap: 150us},
           duplex: half, acks: filter, jitter: 1ms, duplicate: 0.1%, corrupt: 0.1%}
steps:
  - {name: up, from: a, to: b, for: "${link}s", bulk: }
  - {name: down, role: reverse, from: b, to: a, for: "${link}s", udp: {rate: 1Mbit/s, size: 500B}}
""",
    "tools": """\
title: The same by another generator
sweep: {generator: [ewan, iperf3]}
parameters: {generator: ewan}
lab: {topology: dumbbell, rtt: 20ms, wan: {rate: 10Mbit/s, buffer: 30pkt}}
steps:
  - {name: bulk, from: left1, to: right1, for: 2s, generator: "${generator}", bulk: }
""",
    "single": """\
lab: {topology: dumbbell, rtt: 20ms, wan: {rate: 10Mbit/s, buffer: 30pkt}, ip: 4}
steps:
  - {name: bulk, from: left1, to: right1, for: 2s, congestion: reno, bulk: }
""",
    "stage": """\
title: All stages of the golden plan
lab: {topology: {chain: {hops: 3}}, rtt: 30ms, wan: {rate: 10Mbit/s, queue: {priority: {classes: [
  {name: voice, dscp: [ef], buffer: 20pkt}, {name: rest}]}}, police: {rate: 8Mbit/s, burst: 30kB},
  displace: {share: 1%, packets: 3}, loss: {gilbert-elliott: {to_bad: 0.5%, to_good: 30%}}}, routing: static}
scales: {quick: {about: one rate, parameters: {rate: 1}}}
parameters: {rate: 1}
sweep: {rate: [1, 4]}
steps:
  - {name: voice, from: left1, to: right1, for: 2s, dscp: 46, udp: {rate: "${rate}Mbit/s", size: 200B}}
  - {name: rest, from: left1, to: right1, for: 2s, bulk: }
""",
}

# Scenarios that are refused, and what they are refused for is told in the same words.
BASE = "lab: {topology: dumbbell, rtt: 20ms, wan: {rate: 10Mbit/s}}\n"
REFUSED = {
    f"refused{number:02}": text
    for number, text in enumerate(
        [
            BASE,
            BASE + "steps: []\n",
            BASE + "steps: [{name: a, from: left1, to: right1, for: 2s, bulk: , udp: {rate: 1Mbit/s}}]\n",
            BASE + "steps: [{name: a, from: left1, to: right9, for: 2s, bulk: }]\n",
            BASE + "steps: [{name: a, from: left1, to: right1, for: 2, bulk: }]\n",
            BASE + "steps: [{name: a, from: left1, to: right1, for: 2s, bulk: , congestion: vegass}]\n",
            BASE + "steps: [{name: a, from: left1, to: right1, bulk: }]\n",
            BASE + "steps: [{name: a, on: left1, run: 'true', after: b}]\n",
            BASE + "steps: [{name: a, on: left1, run: 'true', after: a}]\n",
            BASE + "steps: [{name: a, on: left1, run: 'true'}]\nfigures: [nonsense by nothing]\n",
            BASE + "steps: [{name: a, on: left1, run: 'true'}]\nmetrics: [mean happiness]\n",
            BASE + "steps: [{name: a, on: left1, run: 'true'}]\nevents: [{at: 1s, link: kore, delay: 30ms}]\n",
            BASE + "steps: [{name: a, on: left1, run: 'true'}]\nevents: [{at: 1s, link: core, delai: 30ms}]\n",
            BASE + "steps: [{name: a, on: left1, run: 'true'}]\nevents: [{at: 1s, link: core, framing: ip}]\n",
            BASE + "steps: [{name: a, on: left1, run: 'true'}]\nevents: [{at: 1s, link: core, down: false}]\n",
            BASE + "steps: [{name: a, on: left1, run: 'true'}]\nnormalise: {by: congestion, to: reno}\n",
            BASE + "steps: [{name: a, on: left1, run: 'true'}]\ncompare: [{by: nothing, to: 1}]\n",
            BASE + "steps: [{name: a, on: left1, run: '${b}'}]\n",
            BASE + "steps: [{name: a, on: left1, run: 'true'}]\nsweep: {b: []}\n",
            BASE + "steps: [{name: a, on: left1, run: 'true'}]\nsweep: {b: [1, 1]}\nparameters: {b: 1}\n",
            BASE + "steps: [{name: a, on: left1, run: 'true'}]\nstop: {metric: mean rtt, within: 0%}\n",
            BASE + "steps: [{name: a, on: left1, run: 'true'}]\nseeds: 0\n",
            BASE + "steps: [{name: a, on: left1, run: 'true'}]\ncapture: [{node: left1, point: core}]\n",
            BASE + "steps: [{name: a, on: left1, run: 'true'}]\nlonger: 3s\n",
            BASE + "steps: [{name: a, ranks: left1, messages: {pattern: ring, iterations: 1}}]\n",
            BASE + "steps: [{name: a, from: left1, to: right1, for: 2s, bulk: , pacing: psp}]\n",
            BASE + "steps: [{name: a, from: left1, to: right1, for: 2s, udp: {rate: 1Mbit/s, size: 10B}}]\n",
            BASE + "steps: [{name: a, from: left1, to: right1, for: 2s, generator: ditg, bulk: 1MB}]\n",
            "lab: {topology: dumbell}\nsteps: [{name: a, on: left1, run: 'true'}]\n",
            "lab: {topology: dumbbell, wan: {rate: 10}}\nsteps: [{name: a, on: left1, run: 'true'}]\n",
            "lab: 7\nsteps: [{name: a, on: left1, run: 'true'}]\n",
            "steps: [{name: a, on: left1, run: 'true'}]\n",
        ]
    )
}

COURSE = (
    "delay-rate-bdp",
    "bufferbloat",
    "slow-start",
    "aimd-and-cubic",
    "mathis",
    "long-fat-path",
    "rtt-unfairness",
    "buffer-sizing",
    "bbr-beside-cubic",
    "active-queues",
    "satellite-handover",
    "broken-wan",
)
V = ["--runtime", "virtual"]
# Each command works in a folder where the corpus is; {streams} is the experiment that the scenario made.
COMMANDS: list[list[str]] = [
    *(["run", f"{name}.scenario.yaml", *V, *(["--unverified"] if name == "paced" else [])] for name in SCENARIOS),
    ["run", "stage.scenario.yaml", *V, "--size", "quick", "--again", "--name", "a name", "--tag", "x", "--note", "n"],
    *(["run", f"{name}.scenario.yaml", *V] for name in REFUSED),
    *(["run", f"{name}.scenario.yaml", "--show"] for name in SCENARIOS),
    ["lab", "dumbbell", "--rtt", "100ms", *V],
    ["lab", "dumbbell", "--rtt", "10ms", "--rate", "100M", "--pairs", "3", "--loss", "1%", "--json", *V],
    ["lab", "parking-lot", "--rtt", "60ms", "--rate", "100M", "--buffer", "255pkt", *V],
    ["lab", "star", "--arms", "4", "--ip", "6", *V],
    ["lab", "ring", "--routers", "4", "--routing", "ospf", *V],
    ["lab", "dumbbell", "--emulator", "kernel", "--rate", "50M", *V],
    ["lab", "dumbbell", "--policy", "strict", "--rtt", "30ms", *V],
    *(["lab", name, *V] for name in ("l4s", "satellite", "wifi", "lte", "dsl", "voice", "switched")),
    ["lab", "labs/stages.lab.yaml", *V],
    ["transfer", "dumbbell", "--rtt", "20ms", "--rate", "50M", "--cc", "reno,bbr", "--for", "2s", *V],
    ["transfer", "dumbbell", "--rtt", "20ms", "--rate", "20M", "--pairs", "2", "--flows", "2", "--volume", "1MB", *V],
    ["batch", "dumbbell", "--rtt", "30ms", "--do", "left1: ping -c 3 right1", "--capture", "core:forward icmp", *V],
    ["batch", "dumbbell", "--rtt", "30ms", "--do", "left1 at 1s: false", *V],
    ["characterise", "dumbbell", "--rtt", "40ms", "--rate", "10M", "--path", "left1", "right1", *V, "-o", "path.json"],
    ["advise", "path.json", "--objective", "completion", "--volume", "1MB", "--protocols", "reno,cubic", "--plan"],
    ["hstts", "--app", "BU", "--rtt", "Mix", "--cc", "cubic,bbr", "--show"],
    ["transfers", "transfers.yaml", "--show"],
    ["transfers", "transfers.yaml", "--run", *V],
    ["report", "{streams}", "--figure", "goodput by streams, lines congestion", "--flent", "flent"],
    ["report", "{commands}"],
    ["export", "{streams}", "--latex", "latex", "--csv", "csv", "--parquet", "parquet", "--reference", "reference.csv"],
    ["export", "{laws}", "--latex", "latex-laws", "--csv", "csv-laws"],
    ["export", "single.scenario.yaml", "--ns3", "single.cc", "--ns2", "single.tcl", "--nxe", "single.xml"],
    ["plot", "{streams}", "cwnd", "--run", "2", "--flows", "all", "--from", "1s", "--to", "2s", "--out", "cwnd.svg"],
    ["plot", "{streams}", "goodput by streams", "--style", "paper-1col", "--out", "goodput.svg"],
    ["compare", "{streams}", "{queues}", "-o", "compared.html"],
    ["certificate", "{streams}", "--json"],
    ["certificate", "{queues}"],
    ["runs", "--json"],
    ["archive", "{stage}", "--author", "Lovelace, Ada", "-o", "crate"],
    ["store", "verify"],
    ["trace", "make", "lte", "--seed", "3", "--length", "5s"],
    ["trace", "check", "labs/stages.trace.csv"],
    ["course", "list"],
    *(
        command
        for name in COURSE
        for command in (["course", "start", name, "--student", "4711"], ["course", "check", name])
    ),
]
