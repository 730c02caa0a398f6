"""Open MPI as a generator of messages: a real rank in each node, `ewan-mpi` (generator/mpi), started by mpirun.

Comes in: a step of `messages`; later a file of each rank. Goes out: one command, in the first rank's node; rows of
flows and exchanges. mpirun starts its daemons in the other nodes without ssh: its agent enters a node's network
namespace and gives it the node's name as a host name, or Open MPI would take all ranks for neighbours on one machine
and use shared memory. So the ranks' messages and the daemons' cross the lab's links by TCP. The bytes of a barrier are
chosen by Open MPI and not recorded. Ranks that wait poll, as Open MPI's do. In the virtual clock they share one
processor, and one that has its message may run some ticks of 4 ms later."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from ewan.generator.external.transfer import Obstacle, Output, Tool, ToolTransfer, TransferCommands
from ewan.generator.rows import Row, Rows, number
from ewan.generator.scenario.laws import amount
from ewan.labs.base.product import RELEASE, from_source
from ewan.labs.base.units import NS_PER_SECOND
from ewan.labs.record.schedule import OpenMpiTool
from ewan.labs.runtime.program import Command

PROGRAM = str(RELEASE / "ewan-mpi")
"""The path where generator/mpi/build.sh puts the program."""
LEAD_NS = 10 * NS_PER_SECOND
"""mpirun and its daemons took 3.2 to 3.4 s over an RTT of 20 ms until the ranks ran."""
COLUMNS = ("number", "start_ns", "duration_ns")

# Words: the program, the congestion control, from its start to the ranks', the nodes, how many, what a rank does.
SCRIPT = r"""
program=$1 congestion=$2 after=$3 nodes=$4 ranks=$5; shift 5
begun=$("$program" now) || exit
echo "$begun"
first=${nodes%%,*}
space=$(ip netns identify $$)
agent=$(mktemp -t ewan-mpi-XXXXXX) || exit
trap 'rm -f "$agent"' EXIT
trap 'exit 143' INT TERM
cat >"$agent" <<END
#!/bin/sh
node=\$1; shift
exec nsenter --net="/run/netns/${space%-"$first"}-\$node" unshare --uts sh -c "hostname \$node
    { echo $congestion >/proc/sys/net/ipv4/tcp_congestion_control; } 2>/dev/null ||
        { echo '\$node may not make $congestion its own congestion control' >&2; exit 1; }
    exec \$*"
END
chmod +x "$agent"
export program
"$agent" "$first" mpirun --allow-run-as-root --bind-to none --mca plm rsh --mca plm_rsh_agent "$agent" \
    --mca btl tcp,self -x EWAN_OUT --host "$nodes" -np "$ranks" '"$program"' run "$@" $((begun + after))
"""


def obstacle(step: Any, settings: Any) -> Obstacle | None:
    """The key of a step that Open MPI's ranks cannot do, with its remedy; None where they can do all."""
    kind, work = step.kind, step.work
    if kind != "messages":
        return kind, f'exchanges only messages, not {kind}: write "generator: ewan"'
    if step.for_ is not None:
        return "for", 'ends with its iterations: leave it out, or write "generator: ewan"'
    for key in ("size", "compute"):
        law = getattr(work, key)
        if law is not None and law.kind != "constant":
            return "messages", f'has no laws: write a constant {key}, or "generator: ewan"'
    for key in ("send_buffer_bytes", "receive_buffer_bytes", "window_bytes", "mss_bytes", "dscp", "ecn", "nodelay"):
        if getattr(settings.socket, key):
            return key.removesuffix("_bytes"), 'has its own options of sockets: write "generator: ewan"'
    return None


def commands(transfer: ToolTransfer) -> TransferCommands:
    """One command, in the first rank's node, which starts all others."""
    work, congestion = transfer.step.work, transfer.settings.congestion
    assert congestion is not None
    early_ns = max(0, transfer.at_ns - LEAD_NS)
    nodes = transfer.members
    words = (PROGRAM, congestion, str(transfer.at_ns - early_ns), ",".join(nodes), str(len(nodes)))
    size = 0 if work.size is None else amount(work.size.choice)
    rank = (work.pattern, str(work.iterations), str(size), str(amount(work.compute.choice)))
    return TransferCommands(
        (Command(nodes[0], ("sh", "-c", SCRIPT, "ewan-mpi", *words, *rank), early_ns),),
        client=0,
        tool=OpenMpiTool(
            work.pattern,
            work.iterations,
            None if work.pattern == "barrier" else size * _messages(work.pattern, len(nodes)),
            stream=0,
        ),
        node_congestion=dict.fromkeys(nodes, congestion),
    )


def _messages(pattern: str, ranks: int) -> int:
    """The number of messages that each rank sends, and receives, in an iteration."""
    return {"all-to-all": ranks - 1, "neighbour-exchange": min(2, ranks - 1)}.get(pattern, 1)


def rows(output: Output) -> Rows:
    """A row of flows for each rank, and one of exchanges for each of its iterations."""
    tool, first = output.flow.tool, output.stdout.split(b"\n", 1)[0]
    assert isinstance(tool, OpenMpiTool)
    result: Rows = {"flows": [], "exchanges": []}
    for rank, node in enumerate(output.flow.members):
        row = {**output.row, "part": rank, "source": node, "sink": None}
        found = _read(output.directory / f"rank-{rank}.csv")
        if len(found) < tool.iterations or not first.isdigit():
            said = [line.strip() for line in output.stderr.splitlines() if line.strip(" -")]
            row["error"] = f"openmpi: {said[0] if said else 'its rank left no record'}"
            result["flows"].append(row)
            continue
        base_ns = output.started_ns - int(first)
        result["flows"].append(_flow(row, found, tool.sent_bytes, base_ns))
        result["exchanges"] += [
            {
                "flow": row["flow"],
                "part": rank,
                "number": number,
                "start_ns": base_ns + start_ns,
                "duration_ns": duration_ns,
                "sent_bytes": tool.sent_bytes,
                "received_bytes": tool.sent_bytes,
            }
            for number, start_ns, duration_ns in found
        ]
    return result


def _read(path: Path) -> list[tuple[int, int, int]]:
    """The whole rows that a rank wrote; an incomplete last row is left out."""
    try:
        lines = list(csv.reader(path.read_text().splitlines()))
    except OSError:
        return []
    return [(int(a), int(b), int(c)) for a, b, c in (line for line in lines[1:] if len(line) == len(COLUMNS))]


def _flow(row: Row, found: list[tuple[int, int, int]], sent_bytes: int | None, base_ns: int) -> Row:
    """`base_ns`: from CLOCK_MONOTONIC, which all nodes share, to T0."""
    _, last_ns, lasted_ns = found[-1]
    ended_ns = base_ns + last_ns + lasted_ns
    return {
        **row,
        "started_ns": base_ns + found[0][1],
        "ended_ns": ended_ns,
        "completion_ns": ended_ns - number(row, "scheduled_ns"),
        "received_bytes": None if sent_bytes is None else sent_bytes * len(found),
    }


TOOL = Tool(
    name="openmpi",
    programs={"mpirun": "openmpi-bin", PROGRAM: "libopenmpi-dev", "nsenter": "util-linux"},
    remedy=f'write "{from_source("make mpi")}", which builds it with Debian\'s openmpi-bin and libopenmpi-dev',
    about="`messages` of constant size and computing by ranks of Open MPI (`make mpi` builds their program), one in "
    "each node, over TCP. Computing is sleeping. It starts 10 s before its time, which is when the ranks begin; the "
    "daemons of mpirun use the lab's links too, little, before and after that. `congestion` becomes the setting of "
    "all the nodes. Ranks poll: in the virtual clock one may see its message some ticks of 4 ms late.",
    obstacle=obstacle,
    commands=commands,
    rows=rows,
    lead_ns=LEAD_NS,
    between_machines=False,
)
