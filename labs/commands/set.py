"""`ewan lab set`: changes a link of a lab that is up, or takes it down and brings it up again."""

from __future__ import annotations

import time
from typing import Literal

import click

from ewan.labs import change, link_changes
from ewan.labs.base.codec import Struct
from ewan.labs.base.units import NS_PER_SECOND
from ewan.labs.commands.errors import Refused, guarded
from ewan.labs.commands.live import which
from ewan.labs.commands.options import json_option, lab_option, pass_context
from ewan.labs.commands.privileges import as_root
from ewan.labs.context import Context
from ewan.labs.link.change import LIVE
from ewan.labs.link.direction import Heading
from ewan.labs.link_changes import LinkChangeMade
from ewan.labs.plan import Routing
from ewan.labs.routing_documents import HostPair

_KEYS = list(LIVE)
HELP = f"""Change a link while it runs, or take it down and bring it up again. Queued packets are kept.

KEY is {", ".join(_KEYS[:-1])} or {_KEYS[-1]}; at=+10s delays the change; for down and up, this
command waits until then. A link that is down has no carrier at either end. With a routing protocol, other paths are
found, and the command prints how long that took.

\b
ewan lab set core rate=500Mbit/s at=+10s
ewan lab set core delay=80ms loss=0.1% --direction forward
ewan lab set ring1 down
ewan lab set ring1 up at=+10s
"""


class CarrierChange(Struct):
    """A link that was taken down, or brought up, and the recovery of the routes after it (see `Recovery`)."""

    lab: str
    link: str
    up: bool
    routing: Routing
    recovered_ns: int | None
    unreachable: tuple[HostPair, ...]
    cut_off: tuple[HostPair, ...]


@click.command("set", help=HELP)
@lab_option
@click.option(
    "--direction",
    type=click.Choice(["forward", "backward", "both"]),
    default="both",
    show_default=True,
    help="the direction of the link to change",
)
@json_option(lambda: (dict[Heading, LinkChangeMade], CarrierChange))
@click.argument("link")
@click.argument("words", nargs=-1, required=True, metavar="KEY=VALUE…")
@guarded
@pass_context
def set_command(
    context: Context,
    lab: str | None,
    direction: Heading | Literal["both"],
    as_json: bool,
    link: str,
    words: tuple[str, ...],
) -> None:
    """`ewan lab set`, whose help goes by the table of settings."""
    as_root(context)
    labs = context.live()
    name = which(labs, lab)
    if words[0] in ("down", "up") and [word[:3] for word in words[1:]] in ([], ["at="]):
        if link not in {each.name for each in labs.load(name).plan.links}:
            raise Refused(f"{name} has no link {link}: ewan ps lists them")
        wait_until(context, f"{link} of {name} {words[0]}", words[1] if words[1:] else "at=+0s")
        set_carrier(context, name, link, words[0] == "up", as_json)
        return
    for word in words:
        if "=" not in word:
            raise Refused(f'"{word}": write a change as KEY=VALUE, for example rate=500Mbit/s, or only down or up')
    wanted = dict(word.split("=", 1) for word in words)
    answers = link_changes.set_link(labs, name, link, wanted, direction)
    if as_json:
        context.reporter.emit(answers)
        return
    said = " ".join(f"{key}={value}" for key, value in wanted.items() if key != "at")
    when = f"in {wanted['at'][1:]}" if any(each.in_ns for each in answers.values()) else "now"
    context.reporter.console.print(f"{link} of {name}: {said}, {direction}, {when}")


def wait_until(context: Context, what: str, at: str) -> None:
    """Until a time of `at=+10s`: a carrier has no other clock than this command, which Ctrl-C ends."""
    in_ns = change.delay_until(at.removeprefix("at="))
    if in_ns:
        with context.reporter.progress(f"{what} in {at[4:]}"):
            time.sleep(in_ns / NS_PER_SECOND)


def set_carrier(context: Context, name: str, link: str, up: bool, as_json: bool) -> None:
    """Down or up, and what the routes made of it."""
    labs = context.live()
    plan = labs.load(name).plan
    with context.reporter.progress(f"{link} of {name} {'comes up' if up else 'goes down'}: waiting for routes"):
        told = link_changes.set_carrier(labs, name, link, up)
    if as_json:
        context.reporter.emit(
            CarrierChange(name, link, up, plan.routing, told.recovered_ns, told.unreachable, told.cut_off)
        )
    else:
        said = change.carrier_words(plan, link, up, told)
        context.reporter.console.print(f"{link} of {name}: {'up' if up else 'down'}, now{said}", soft_wrap=True)
