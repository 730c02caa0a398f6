"""`ewan up`: a lab of the live clock, without a verification."""

from __future__ import annotations

from typing import Any

import click

from ewan.labs import descriptions
from ewan.labs.commands import live
from ewan.labs.commands.errors import guarded
from ewan.labs.commands.options import description_options, machines_option, only_live, pass_context, trust_option
from ewan.labs.commands.privileges import as_root
from ewan.labs.context import Context


@click.command("up")
@machines_option
@description_options
@trust_option
@guarded
@pass_context
def up_command(context: Context, /, topology: str, **options: Any) -> None:
    """Bring a lab up without verifying it.

    \b
    ewan up star --rtt 20ms --name campus
    """
    only_live(click.get_current_context(), None, context.runtime)
    as_root(context)
    reporter = context.reporter
    plan = descriptions.trusted_plan_of(context, topology, options, virtual=False, facts=live.host_facts(context))
    with live.brought_up(context, plan) as plan:
        with reporter.progress(f"{plan.lab} is up") as progress:
            routing = live.converged(context, plan, lambda text: progress.update(f"{plan.lab} is up: {text}"))
        live.start_machines(context, plan)
        live.show_routing(context, routing)
        remedy = "ewan lab verifies it" if any(node.machine for node in plan.nodes) else f"ewan lab verify {plan.lab}"
        reporter.console.print(f"{plan.lab} is up, unverified: {remedy}")
