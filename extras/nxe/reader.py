"""NXE's XML becomes a scenario: its topology a graph, its steps flows with their dates, its parameters a sweep.

In: a file that ends in .xml, with the elements of `vocabulary.SCHEMA`. Out: a `Scenario` whose text is YAML with the
keys of docs/reference/scenario.md, and what of the XML has no use in a lab. Errors, also those that a scenario finds
later (a node that is not there, say), point to the line and column of the XML. Pure but for `load`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path as File
from typing import Any, NamedTuple

from ewan.extras.nxe import script, tree, vocabulary
from ewan.extras.nxe.builder import ScenarioBuilder
from ewan.extras.nxe.links import NxeTopology, topology
from ewan.extras.nxe.tree import Element
from ewan.generator.scenario import Scenario
from ewan.labs.base.reading import read_text
from ewan.labs.base.source import Path, scalar
from ewan.labs.spec import DescriptionError
from ewan.labs.spec.patterns import PatternError, expand

ENDING = ".xml"

_CONFIGURATION = {
    "repetitions": ("seeds",),
    "seed": ("lab", "seed"),
    "protocol": ("defaults", "congestion"),
    "sndbuf": ("defaults", "send_buffer"),
    "rcvbuf": ("defaults", "receive_buffer"),
    "mtu": ("lab", "mtu"),
    "longest": ("longest",),
    "sample": ("sample",),
    "series": ("series",),
    "watch": ("watch",),
}
"""Element → path of its value in a scenario."""


class NxeExperiment(NamedTuple):
    """An experiment. `notes`: the parts of the file without a use in a lab, a line each."""

    scenario: Scenario
    notes: tuple[str, ...]


def load(path: File) -> NxeExperiment:
    """Reads a file; DescriptionError where it cannot be read or has no equivalent."""
    try:
        text = read_text(path)
    except OSError as error:
        reason = error.strerror or "cannot be read"
        raise DescriptionError(f"{path}: {reason}: write the path of an experiment (*{ENDING})") from None
    return parse(text, path)


def parse(text: str, file: File) -> NxeExperiment:
    """The experiment in `text`; without a name of its own it has that of `file`."""
    root = tree.read(text, str(file))
    vocabulary.check(root, str(file))
    reader = _Reader(root, ScenarioBuilder(str(file), root))
    reader.read(_name_of(file))
    return NxeExperiment(reader.written.scenario(file), tuple(reader.notes))


def _name_of(file: File) -> str:
    """A name that labs may have, made of the file's."""
    word = re.sub(r"[^a-z0-9]+", "-", file.name.removesuffix(ENDING).lower()).strip("-")
    return word if word[:1].isalpha() else f"experiment-{word}".strip("-")


@dataclass(slots=True)
class _Reader:
    root: Element
    written: ScenarioBuilder
    notes: list[str] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)

    def read(self, name: str) -> None:
        """Puts every part of the experiment into `written`, in the order in which people read a scenario."""
        written, root = self.written, self.root
        written.put(("name",), root.said("name") or name, root.first("name") or root)
        for key in ("title", "about", "source"):
            if (element := root.first(key)) is not None:
                written.put((key,), element.text, element)
        self._parameters()
        self._configuration()
        described, scenario = root.first("topology"), root.first("scenario")
        assert described is not None and scenario is not None  # the schema has them once
        found = topology(described, written)
        if any(site.first("frontal") is not None for site in described.every("site")):
            self.notes.append("frontal: nothing is reserved or deployed: the lab has the nodes that the sites name")
        self._scenario(scenario, found)

    def _parameters(self) -> None:
        written = self.written
        for each in self.root.every("parameter"):
            name = each.first("name")
            assert name is not None
            values = list(each.every("value"))
            path: Path = ("parameters", name.text)
            if written.has(path):
                raise written.error(name, "is the name of another parameter: write another one")
            written.put(path, scalar(values[0].text), values[0])
            if len(values) > 1:
                written.put(("sweep", name.text), [scalar(value.text) for value in values], each)
                for index, value in enumerate(values):
                    written.place(("sweep", name.text, index), value)

    def _configuration(self) -> None:
        configuration = self.root.first("configuration")
        if configuration is None:
            return
        seed = configuration.first("seed")
        if seed is not None and configuration.first("repetitions") is not None:
            raise self.written.error(seed, "repetitions have seeds of their own: leave it out")
        for element in configuration.children:
            unit = vocabulary.SCHEMA["configuration"][element.name].unit
            self.written.put(_CONFIGURATION[element.name], self.written.amount(element, unit), element)

    def _scenario(self, scenario: Element, found: NxeTopology) -> None:
        servers = {
            name
            for node in scenario.every("node")
            if node.said("type") == "server"
            for name in self._names(node.first("id"), found)
        }
        pairs: dict[tuple[str, str], None] = {}
        steps = 0
        for node in scenario.every("node"):
            identity, role = node.first("id"), node.first("type")
            assert identity is not None and role is not None
            names = self._names(identity, found)
            if role.text not in ("server", "client", "command"):
                raise self.written.error(role, "is no role: write server, client or command")
            for step in node.every("step"):
                if role.text == "server":
                    self._server(step)
                    continue
                path: Path = ("steps", steps)
                self._timing(step, path)
                self.written.put((*path, "on" if role.text == "command" else "from"), pattern(identity), identity)
                if role.text == "command":
                    self._command(step, path)
                else:
                    for ends in self._client(node, step, path, names, servers, found):
                        pairs.setdefault(ends)
                steps += 1
        if not steps:
            raise self.written.error(scenario, "sends nothing: write a node of type client")
        found.pairs(self.written, list(pairs))

    def _names(self, identity: Element | None, found: NxeTopology) -> list[str]:
        """The nodes that an id stands for; none where a parameter decides."""
        if identity is None or "${" in identity.text:
            return []
        try:
            names = [name for part in pattern(identity).split(", ") for name in expand(part)]
        except PatternError as wrong:
            raise self.written.error(identity, str(wrong)) from None
        for name in names:
            found.known(name, identity, self.written)
        return names

    def _server(self, step: Element) -> None:
        """Checks a server's script; a server has nothing to do before clients come."""
        script_of = step.first("script")
        assert script_of is not None
        if script_of.text != script.SERVER:
            message = f'a server runs {script.SERVER}: write that, or "command" as its <type>'
            raise self.written.error(script_of, message)

    def _timing(self, step: Element, path: Path) -> None:
        written = self.written
        label = step.first("label")
        assert label is not None
        word = re.sub(r"[^a-z0-9]+", "-", label.text.lower()).strip("-") or "step"
        word = word if word[0].isalpha() else f"step-{word}"
        self.labels[word] = times = self.labels.get(word, 0) + 1
        written.put((*path, "name"), word if times == 1 else f"{word}-{times}", label)
        for name, key in (("role", "role"), ("date", "at"), ("offset", "offset")):
            if (element := step.first(name)) is not None:
                written.put((*path, key), self._law(element), element)
        if (repeat := step.first("repeat")) is not None:
            written.put((*path, "repeat"), {}, repeat)
            for element in repeat.children:
                written.put((*path, "repeat", element.name), self._law(element), element)

    def _law(self, element: Element) -> Any:
        """A duration or a law, in seconds where it has no unit."""
        known = {**vocabulary.SCHEMA["step"], **vocabulary.SCHEMA["repeat"]}
        unit = known[element.name].unit
        if not unit:
            return scalar(element.text)
        if ":" not in element.text:
            return self.written.amount(element, unit)
        try:
            return script.law(element.text, unit)
        except ValueError as wrong:
            raise self.written.error(element, str(wrong)) from None

    def _command(self, step: Element, path: Path) -> None:
        program = step.first("script")
        assert program is not None
        words = f"{program.text} {step.said('scriptparam')}".strip()
        self.written.put((*path, "run"), words, program)

    def _client(
        self, node: Element, step: Element, path: Path, names: list[str], servers: set[str], found: NxeTopology
    ) -> list[tuple[str, str]]:
        """The keys of the traffic of a client; returns the pairs of hosts that communicate."""
        written = self.written
        program, options = step.first("script"), step.first("scriptparam")
        assert program is not None
        if program.text != script.CLIENT:
            message = f'a client runs {script.CLIENT}: write that, or "command" as its <type> for a program of your own'
            raise written.error(program, message)
        try:
            keys = script.client("" if options is None else options.text)
        except ValueError as wrong:
            raise written.error(options or step, str(wrong)) from None
        target = step.first("target") or node.first("target")
        if "messages" in keys:
            written.move((*path, "from"), (*path, "ranks"))
        elif target is None:
            raise written.error(step, "has no <target>: write to whom it sends, here or in the node")
        else:
            written.put((*path, "to"), pattern(target), target)
        for key, value in keys.items():
            written.put((*path, key), value, options or program)
        if target is None or "messages" in keys:
            return []
        if "for" in keys and (options is None or "--duration" not in options.text):
            self.notes.append(
                f"{written.at(step)}no volume and no duration: each sends for {script.IPERF_S}, as iperf does"
            )
        sinks = self._names(target, found)
        if missing := [name for name in sinks if name not in servers]:
            message = f"{missing[0]} serves nothing: write a node of type server, with a step of {script.SERVER}"
            raise written.error(target, message)
        if len(names) == len(sinks) or 1 in (len(names), len(sinks)):
            count = max(len(names), len(sinks)) if names and sinks else 0
            return [(names[index % len(names)], sinks[index % len(sinks)]) for index in range(count)]
        return []  # the scenario says what is wrong with it


def pattern(element: Element) -> str:
    """`sagittaire{1-10}` as a scenario writes it; parameters stay as they are."""
    text = re.sub(r"(?<!\$)\{([^{}]*)\}", r"[\1]", element.text.lower())
    return ", ".join(part for part in re.split(r"[,\s]+(?![^\[]*\])", text) if part)
