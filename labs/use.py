"""The commands that use a lab that is up: run something in a node, change a link.

In: the command line. Out: the command's own output and exit status, or what was changed.
"""

from __future__ import annotations

import sys
from typing import Literal

import click

from labs import change, cli


@click.command("exec", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@cli.live_option
@cli.lab_option
@click.argument("node")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@cli.guarded
def exec_command(lab: str | None, node: str, command: tuple[str, ...]) -> None:
    """Run a command in a node; its exit status is ours.

    \b
    ewan exec left1 -- ping -c 3 right1
    """
    cli.as_root()
    words = list(command[1:] if command[0] == "--" else command)
    if not words:
        raise cli.fail("no command: write ewan exec NODE -- COMMAND")
    sys.exit(cli.runtime().exec(cli.which(lab), node, words))


@click.command("shell")
@cli.live_option
@cli.lab_option
@click.argument("node")
@cli.guarded
def shell_command(lab: str | None, node: str) -> None:
    """A shell in a node.

    \b
    ewan shell left1
    """
    cli.as_root()
    name = cli.which(lab)
    prompt = f"[{node}@{name}] \\w\\$ "
    # What the node has: a container's programs are its image's.
    shell = "command -v bash >/dev/null && exec bash --norc -i; exec sh -i"
    sys.exit(cli.runtime().exec(name, node, ["env", f"PS1={prompt}", "sh", "-c", shell]))


@click.command("set")
@cli.live_option
@cli.lab_option
@click.option("--direction", type=click.Choice(["forward", "backward", "both"]), default="both", show_default=True)
@cli.json_option
@click.argument("link")
@click.argument("words", nargs=-1, required=True, metavar="KEY=VALUE…")
@cli.guarded
def set_command(
    lab: str | None, direction: change.Heading | Literal["both"], as_json: bool, link: str, words: tuple[str, ...]
) -> None:
    """Change a link while it runs; queued packets are kept. Or take it down, and bring it up again.

    KEY is rate, delay, jitter, distribution, reorder, loss, corrupt, duplicate, buffer or queue; at=+10s says when.
    A link that is down has no carrier at either end: with a routing protocol, other ways are found, and how long that
    took is told.

    \b
    ewan set core rate=500Mbit/s at=+10s
    ewan set core delay=80ms loss=0.1% --direction forward
    ewan set ring1 down
    ewan set ring1 up
    """
    cli.as_root()
    name = cli.which(lab)
    if words in (("down",), ("up",)):
        set_carrier(name, link, words == ("up",), as_json)
        return
    for word in words:
        if "=" not in word:
            raise cli.fail(f'"{word}": write a change as KEY=VALUE, for example rate=500Mbit/s, or down or up alone')
    wanted = dict(word.split("=", 1) for word in words)
    at = wanted.pop("at", "+0s")
    in_ns = change.delay_until(at)
    plan = cli.runtime().load(name).plan
    found = next((each for each in plan.links if each.name == link), None)
    if found is None:
        raise cli.fail(f"{name} has no link {link}; it has {', '.join([each.name for each in plan.links][:12])}")
    past = cli.runtime().control(name, link, {"command": "changes"})["changes"]
    headings: tuple[change.Heading, ...] = ("forward", "backward") if direction == "both" else (direction,)
    # All is compiled before anything is sent: a change that is refused leaves both directions as they were.
    compiled = {each: change.compile_change(plan, change.as_it_is(found, past), each, wanted) for each in headings}
    answers = {}
    for heading, made in compiled.items():
        keys = made.to_data()
        request = {"command": "set", "link": link, "direction": heading, "in_ns": in_ns, **keys}
        answers[heading] = {"change": keys, "in_ns": in_ns, **cli.runtime().control(name, link, request)}
    if as_json:
        cli.emit(answers)
        return
    said = " ".join(f"{key}={value}" for key, value in wanted.items())
    cli.console.print(f"{link} of {name}: {said}, {direction}, {f'in {at[1:]}' if in_ns else 'now'}")


def set_carrier(name: str, link: str, up: bool, as_json: bool) -> None:
    """Down or up, and what the routes made of it."""
    plan = cli.runtime().load(name).plan
    with cli.messages.status(f"{link} of {name} {'comes up' if up else 'goes down'}: waiting for routes"):
        told = cli.runtime().carrier(name, link, up)
    if as_json:
        cli.emit({"lab": name, "link": link, "up": up, "routing": plan.routing, **told})
    else:
        said = change.carrier_words(plan, link, up, told)
        cli.console.print(f"{link} of {name}: {'up' if up else 'down'}, now{said}", soft_wrap=True)
