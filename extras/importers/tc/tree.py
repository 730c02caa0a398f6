"""The tree that tc has put on a card: qdiscs, classes, filters, as `tc qdisc show` prints it. Options of a kind stay
words."""

from __future__ import annotations

from dataclasses import dataclass, field

from ewan.extras.importers.script import ScriptCommand
from ewan.extras.importers.tc.netfilter import MarkRule
from ewan.extras.importers.tc.words import INGRESS_KINDS, Handle


@dataclass(slots=True)
class Qdisc:
    """`parent`: None at the root. `stab`: words of the size table."""

    command: ScriptCommand
    kind: str
    handle: Handle | None
    parent: Handle | None
    options: list[str]
    stab: list[str]


@dataclass(slots=True)
class Class:
    """A class of HTB. `parent` is a class, or None at the qdisc."""

    command: ScriptCommand
    handle: Handle
    parent: Handle | None
    options: list[str]


@dataclass(frozen=True, slots=True)
class TcFilter:
    """`words` from its kind on; `mark` is the handle of a `fw`."""

    command: ScriptCommand
    parent: Handle
    order: int
    protocol: str
    mark: str
    words: tuple[str, ...]

    @property
    def kind(self) -> str:
        """The classifier, like `u32`."""
        return self.words[0] if self.words else ""


@dataclass(slots=True)
class TcDevice:
    """A device, with all that was put on it."""

    name: str
    qdiscs: list[Qdisc] = field(default_factory=list)
    classes: dict[Handle, Class] = field(default_factory=dict)
    filters: list[TcFilter] = field(default_factory=list)
    rules: list[MarkRule] = field(default_factory=list)
    ended: ScriptCommand | None = None

    @property
    def root(self) -> Qdisc | None:
        """The qdisc at the root."""
        return next((each for each in self.qdiscs if each.parent is None and each.kind not in INGRESS_KINDS), None)

    @property
    def entrance(self) -> Qdisc | None:
        """The qdisc of incoming packets: ingress or clsact."""
        return next((each for each in self.qdiscs if each.kind in INGRESS_KINDS), None)

    @property
    def commands(self) -> list[ScriptCommand]:
        """The commands that made the objects on the card."""
        below = [*(each.command for each in self.classes.values()), *(each.command for each in self.filters)]
        return [*(each.command for each in self.qdiscs), *below]

    @property
    def is_loopback(self) -> bool:
        """Return whether it is lo."""
        return self.name.rpartition("/")[2] == "lo"

    def is_of(self, namespace: str | None) -> bool:
        """Return whether it is in that namespace, None for the script's own."""
        return self.name.rpartition("/")[0] == (namespace or "")

    def beside(self, device: str) -> str:
        """The name of another card in the same namespace."""
        return f"{self.name.rpartition('/')[0]}/{device}" if "/" in self.name else device

    def child(self, parent: Qdisc) -> Qdisc | None:
        """The child of a qdisc with one child."""
        major = parent.handle.major if parent.handle else -1
        return next((each for each in self.qdiscs if each.parent is not None and each.parent.major == major), None)

    def below(self, handle: Handle) -> Qdisc | None:
        """The qdisc below a class."""
        return next((each for each in self.qdiscs if each.parent == handle), None)

    def with_handle(self, major: int) -> Qdisc | None:
        """The qdisc `major:`."""
        return next((each for each in self.qdiscs if each.handle is not None and each.handle.major == major), None)

    def has_below(self, handle: Handle) -> bool:
        """Return whether a class has classes below it."""
        return any(each.parent == handle for each in self.classes.values())
