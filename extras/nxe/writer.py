"""A run of a scenario as an experiment in NXE's XML. Pure.

In: a run with its plan. Out: the XML's text, with a comment for each part of the scenario that has no element and no
influence on the traffic. A part with influence but without an element is refused: at its line, or by the link's
name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from ewan.extras.nxe import script, vocabulary
from ewan.extras.nxe.sites import describe, ranges
from ewan.extras.simulators.network import SimulatedNetwork, network
from ewan.generator.scenario import ScenarioRun
from ewan.generator.scenario.fields import ScenarioDescription, ScenarioStep, Socket
from ewan.labs.compile.stacks import AS_ALL
from ewan.labs.plan import Plan
from ewan.labs.spec.fields import Host
from ewan.labs.spec.patterns import PatternError, members

_LEFT_OUT = ("capture", "stop", "normalise", "compare", "beside", "metrics", "figures", "scales")
"""Keys that decide what is looked at, not what is sent."""
_OF_A_LAB = {"dither": "auto", "emulator": "auto", "routing": "static", "ip": "dual"}
"""Keys of a description that NXE has no element for, with the values that they have in what is read again."""


def _is_set(host: Host) -> bool:
    """Return whether a host has settings other than those of all hosts."""
    return bool(host.pacing) or host.machine is not None or host.stack not in (None, *AS_ALL)


def experiment(run: ScenarioRun, plan: Plan, repetitions: int = 1) -> str:
    """The text; DescriptionError for a part that NXE has no element for."""
    document = run.document
    if document.events:
        raise run.places.error(("events",), 'NXE has no changes of links: leave "events:" out')
    if any(_is_set(host) for host in run.spec.description.hosts.values()):
        raise run.spec.error(("hosts",), 'NXE has no settings of hosts: leave "hosts:" out of the lab')
    lab = network(plan)
    root = Element(vocabulary.ROOT)
    for left in _notes(run, document):
        root.append(ElementTree.Comment(f" {left.replace('--', '- -')} "))
    _texts(root, {"name": run.scenario.name, "title": run.scenario.title, "source": run.document.source or ""})
    _configuration(SubElement(root, "configuration"), run, lab, repetitions)
    describe(SubElement(root, "topology"), lab)
    _scenario(SubElement(root, "scenario"), run, lab)
    ElementTree.indent(root)
    return (
        ElementTree.tostring(root, encoding="unicode", xml_declaration=True).replace(
            "<?xml version='1.0' encoding='utf-8'?>", '<?xml version="1.0" encoding="utf-8"?>'
        )
        + "\n"
    )


def _notes(run: ScenarioRun, document: ScenarioDescription) -> list[str]:
    """The parts that are left out, a line each."""
    said = [key for key in _LEFT_OUT if getattr(document, key)]
    notes = [f"left out, as NXE has no element for it: {key}" for key in said]
    description = run.spec.description
    for key, usual in _OF_A_LAB.items():
        value = getattr(description, key)
        if str(value) != usual:
            notes.append(f"left out, as NXE has no element for it: {key} of the lab, which is {value}")
    values = " ".join(f"{name}={value}" for name, value in run.parameters.items())
    return notes + ([f"with the parameters {values}"] if values else [])


def _texts(parent: Element, texts: dict[str, str]) -> None:
    for name, text in texts.items():
        if text:
            SubElement(parent, name).text = text


def _configuration(parent: Element, run: ScenarioRun, lab: SimulatedNetwork, repetitions: int) -> None:
    document = run.document
    longest = "" if document.longest is None else str(document.longest)
    several = {"repetitions": str(repetitions)} if repetitions > 1 else {"seed": str(run.seed)}
    intervals = {key: str(getattr(document, key)) for key in ("sample", "series", "watch")}
    mtu = {} if lab.mtu == 1500 else {"mtu": str(lab.mtu)}
    _texts(parent, {**several, **mtu, "longest": longest, **intervals})


def _scenario(parent: Element, run: ScenarioRun, lab: SimulatedNetwork) -> None:
    """A node of type server for each group of receivers, then the steps in their order."""
    steps = [(index, step) for index, step in enumerate(run.document.steps)]
    sinks: dict[str, str] = {}
    for index, step in steps:
        if step.kind not in ("run", "messages"):
            for part in ranges(_names(run, lab, index, step, "to")):
                sinks.setdefault(part, step.name)
    for part, label in sinks.items():
        node = SubElement(parent, "node")
        _texts(node, {"id": part, "type": "server"})
        _texts(SubElement(node, "step"), {"label": label, "date": "0", "script": script.SERVER})
    for index, step in steps:
        _step(parent, run, lab, index, step)


def _step(parent: Element, run: ScenarioRun, lab: SimulatedNetwork, index: int, step: ScenarioStep) -> None:
    key = {"run": "on", "messages": "ranks"}.get(step.kind, "from")
    _refuse_unknown(run, index, step, run.document.defaults)
    who = _names(run, lab, index, step, key)
    if not who:
        parent.append(ElementTree.Comment(f" step {step.name} has no members "))
        return
    node = SubElement(parent, "node")
    _texts(node, {"id": ",".join(ranges(who)), "type": "command" if step.kind == "run" else "client"})
    if key == "from":
        _texts(node, {"target": ",".join(ranges(_names(run, lab, index, step, "to")))})
    written = SubElement(node, "step")
    offset = script.shown(step.offset)
    _texts(written, {"label": step.name, "date": script.shown(step.at), "offset": "" if offset == "0ns" else offset})
    if step.repeat is not None:
        repeat = {"times": str(step.repeat.times), "every": script.shown(step.repeat.every)}
        _texts(SubElement(written, "repeat"), repeat)
    _texts(written, {"role": step.role or ""})
    if step.kind == "run":
        program, _, options = (step.run or "").partition(" ")
        _texts(written, {"script": program, "scriptparam": options.strip()})
    else:
        _texts(written, {"script": script.CLIENT, "scriptparam": script.words(step, run.document.defaults)})


def _refuse_unknown(run: ScenarioRun, index: int, step: ScenarioStep, defaults: Socket) -> None:
    """Settings of sockets without an option, those of the step and those of `defaults`."""
    if step.kind == "media":
        raise run.places.error(("steps", index, "media"), 'NXE sends no video: write another kind, or "udp:"')
    if step.service:
        raise run.places.error(("steps", index, "service"), "NXE ends no command when others have ended: leave it out")
    if step.when is not None:
        raise run.places.error(("steps", index, "when"), 'NXE starts steps at their times: write "at:" instead')
    if step.after:
        raise run.places.error(("steps", index, "after"), 'NXE starts steps at their times: write "at:" instead')
    for key in set(Socket.model_fields) - set(script.SOCKET.values()):
        for of, path in ((step, ("steps", index, key)), (defaults, ("defaults", key))):
            if getattr(of, key) is not None:
                raise run.places.error(path, f"{script.CLIENT} has no option for it: leave it out")


def _names(run: ScenarioRun, lab: SimulatedNetwork, index: int, step: ScenarioStep, key: str) -> Sequence[str]:
    """Nodes that a key of a step names, one by one."""
    written: Iterable[str] = getattr(step, {"from": "from_"}.get(key, key)) or ()
    try:
        return members(list(written), run.document.roles, list(lab.nodes))
    except PatternError as wrong:
        raise run.places.error(("steps", index, key), str(wrong)) from None
