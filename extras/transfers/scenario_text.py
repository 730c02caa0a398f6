"""A plan as the text of a scenario: a step for each accepted transfer, at its time, held to its rate at the source.

In: requests as they were read, and a plan of them. Out: YAML with the keys of docs/reference/scenario.md, which a
person can read, change and run by itself. A transfer that waits for others starts when they have ended (`after:`), not
when they should have."""

from __future__ import annotations

from ewan.extras.transfers.plan import Transfer, TransferPlan
from ewan.extras.transfers.reading import TransferRequests
from ewan.extras.transfers.strategies import TITLES, Strategy
from ewan.generator.scenario.data import ScenarioMapping, ScenarioValue
from ewan.generator.scenario.writing import to_yaml
from ewan.labs.base.units import NS_PER_SECOND, Duration, Rate

SOURCE = "eWAN paper, section V.A"
METRICS = ["max completion time", "mean completion time", "aggregate goodput", "utilisation", "retransmissions"]
FIGURES = ["timeline", "goodput over time"]


def name_of(asked: TransferRequests, strategy: Strategy) -> str:
    """The scenario's, and that of its experiment's directory."""
    return f"{asked.name}-{strategy}"


def text(asked: TransferRequests, plan: TransferPlan, strategy: Strategy, pacing: str | None) -> str:
    """The scenario of a plan with at least one accepted transfer. `pacing`: the word of the step key that holds sources
    to their rates; None: only TCP decides."""
    accepted = plan.accepted
    said = [f"{len(accepted)} of {len(plan.transfers)} requests are accepted."]
    if pacing is not None:
        said.append(f"Each is held at its source to the largest rate that the plan gives it ({pacing}).")
    return to_yaml(
        {
            "name": name_of(asked, strategy),
            "title": f"Bulk transfers, {TITLES[strategy]}",
            "about": " ".join(said),
            "source": SOURCE,
            "lab": asked.lab,
            "defaults": {"congestion": asked.description.congestion or "cubic"},
            "steps": [_step(asked, each, pacing) for each in accepted],
            "metrics": METRICS,
            "figures": FIGURES,
        }
    )


def _step(asked: TransferRequests, transfer: Transfer, pacing: str | None) -> ScenarioMapping:
    """The step of a transfer, in the order of its keys in docs/reference/scenario.md."""
    request = next(each for each in asked.description.requests if each.name == transfer.request.name)
    step: dict[str, ScenarioValue] = {"name": request.name}
    if transfer.after:
        step["after"] = transfer.after[0] if len(transfer.after) == 1 else list(transfer.after)
    else:
        step["at"] = str(Duration(round(transfer.start_s * NS_PER_SECOND)))
    step |= {"from": request.from_, "to": request.to}
    if pacing is not None:
        step["pacing"] = f"{pacing} {Rate(round(transfer.most_bps * transfer.request.headers))}"
    return step | {"bulk": str(request.volume)}
