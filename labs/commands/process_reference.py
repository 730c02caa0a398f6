"""The reference of the variables of the environment and of the exit statuses: pages that are made of their tables."""

from __future__ import annotations

from ewan.labs.commands.errors import EXIT_STATUSES
from ewan.labs.context import VARIABLES

ENVIRONMENT = """# Variables of the environment

An option on the command line wins over a variable. `sudo` removes most variables; `ewan` keeps those of this table when
it continues as root.

| variable | meaning |
|---|---|
"""

OTHERS = """
`make setup` and the builds obey these:

| variable | meaning |
|---|---|
| `BUNDLE`, `BUNDLE_SHA256` | release bundle to install (`off`: none), and the SHA-256 that it must have |
| `EWAN_MIRROR` | Debian mirror for container images (default: `http://deb.debian.org`) |

A program that a scenario starts in a node finds `EWAN_OUT`, the directory for its results.
"""

STATUSES = """# Exit statuses

| status | meaning | examples |
|---|---|---|
"""

REFUSALS = """
`ewan lab exec` ends with the status of the program that it ran in the node.

Results are written to standard output. Progress, notes and errors are written to standard error, so that `--json` output can be read by
other programs.

A refusal names the setting, its value and a remedy:

```
$ ewan lab dumbell
ewan: TOPO "dumbell": unknown topology, write "dumbbell"
$ ewan lab my2.lab.yaml
ewan: my2.lab.yaml:3: wan.bandwith "1Gbit/s": unknown key, write one of rate, buffer, queue, framing, loss, corrupt, duplicate, delay, jitter, distribution, correlation, reorder, …
$ ewan lab dumbbell --rtt 100
ewan: RTT "100": write a duration as "100ms"
$ ewan lab dumbbell --buffer 100B
ewan: BUFFER "100B": holds 100B, less than one packet of 1.538kB: write at least "1pkt"
$ ewan run my
ewan: my.scenario.yaml:6: steps[0].from "left[1-9]": there is no node left5 in the lab: write "left4"
```
"""  # noqa: E501


def environment() -> str:
    """The page of the variables."""
    return ENVIRONMENT + "".join(f"| `{name}` | {meaning} |\n" for name, meaning in VARIABLES.items()) + OTHERS


def exit_statuses() -> str:
    """The page of the exit statuses."""
    rows = "".join(f"| {status} | {meaning} | {cases} |\n" for status, (meaning, cases) in EXIT_STATUSES.items())
    return STATUSES + rows + REFUSALS
