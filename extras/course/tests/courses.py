"""A small lab of the course for tests of it, written into a directory."""

from __future__ import annotations

from pathlib import Path

COURSE = """title: A pipe
about: What fits into a path.
minutes: 45
level: bachelor
prerequisites: [what a bit is]
goals: [compute what fits into a path]
parameters:
  rate: {from: 4Mbit/s, to: 16Mbit/s, step: 0.5Mbit/s}
  rtt: {from: 30ms, to: 90ms, step: 2ms}
  variant: {one of: [reno, cubic]}
values:
  bdp: rate * rtt / 8
questions:
  - name: pipe
    ask: How many bytes are on their way when the path is just full?
    answer: size
    truth: bdp
    tolerance: 2%
    because: Two digits are enough.
    hints:
      - {if: bdp / 2, say: This is one way.}
      - {say: Multiply rate and time.}
  - name: delay
    ask: How long does a packet take to the other end?
    answer: time
    truth: rtt / 2
    tolerance: 0.5ms
    because: It is read off a figure.
  - name: busy
    ask: Which share of the link is used?
    answer: share
    truth: metric("utilisation")
    tolerance: 1%
    because: Of the 2 s.
  - {name: law, ask: How does it grow?, answer: choice, choices: [linear, square root], truth: "'linear'"}
  - {name: why, ask: Why?, answer: words, points: 2}
  - name: tuned
    ask: Choose the smallest buffer.
    answer: settings
    settings: {buffer: {from: 1kB, to: 10MB, bdp: rate * rtt / 8}}
    holds:
      - {that: 'metric("utilisation") > 0.5', else: The path is not full.}
      - {that: settings.buffer <= 2 * bdp, else: It works with less.}
"""
TEXT = """# A pipe of {{ rate }}

## 1. Full

{{ question("pipe") }}

```sh
ewan run pipe.scenario.yaml --runtime virtual
```

```figure
utilisation over time
```

{{ question("delay") }}
{{ question("busy") }}
{{ question("law") }}
{{ question("why") }}
{{ question("tuned") }}
"""
SCENARIO = """# A pipe
name: pipe
parameters:
  rate: 8Mbit/s     # of the path
  rtt: 60ms
  variant: reno
  buffer: 1BDP
lab: {topology: dumbbell, rtt: "${rtt}", wan: {rate: "${rate}", buffer: ${buffer}}}
steps:
  - {name: load, from: left1, to: right1, for: 2s, congestion: "${variant}", bulk: }
"""
GERMAN = """title: Ein Rohr
about: Was in einen Pfad passt.
prerequisites: [was ein Bit ist]
goals: ["ausrechnen, was in einen Pfad passt"]
questions:
  pipe: {ask: Wie viele Bytes sind unterwegs?, hints: [Das ist ein Weg., Multipliziere.]}
  delay: {ask: Wie lange braucht ein Paket?}
  busy: {ask: Welcher Anteil?}
  law: {ask: Wie wächst es?, choices: [linear zur Zeit, Quadratwurzel]}
  why: {ask: Warum?}
  tuned: {ask: Der kleinste Puffer?, else: [Nicht voll., Es geht mit weniger.]}
"""


def written(root: Path, course: str = COURSE, text: str = TEXT, scenario: str = SCENARIO) -> Path:
    """The lab `pipe` in a directory of labs."""
    folder = root / "01-pipe"
    folder.mkdir(parents=True)
    (folder / "course.yaml").write_text(course)
    (folder / "text.md").write_text(text)
    (folder / "teacher.md").write_text("For the teacher.\n")
    (folder / "pipe.scenario.yaml").write_text(scenario)
    (folder / "text.de.md").write_text(text.replace("A pipe", "Ein Rohr"))
    (folder / "course.de.yaml").write_text(GERMAN)
    return folder
