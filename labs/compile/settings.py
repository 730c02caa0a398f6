"""A link's settings put together from all the places where a description may say them.

Comes in: a spec and an edge. Goes out: for each direction what holds, and where it was written, so that a refusal
can point there. The nearer to the link wins: wan or access, its direction, the link itself, the link's direction.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from labs.spec import Spec
from labs.spec.fields import Link
from labs.spec.source import Path
from labs.spec.values import DelayTable
from labs.topologies import Edge
from labs.units import Duration

_ABSENT = {"forward", "backward", "between", "name", "role", "switch"}


@dataclass(slots=True, eq=False)
class Settings:
    """One direction: values that somebody wrote, and where; `base` is where the rest would be written."""

    base: Path
    values: dict[str, Any] = field(default_factory=dict)
    paths: dict[str, Path] = field(default_factory=dict)

    def get(self, key: str, default: Any = None) -> Any:
        return self.values.get(key, default)

    def path(self, key: str) -> Path:
        return self.paths.get(key, (*self.base, key))

    @property
    def delay_ns(self) -> int | None:
        """One-way base delay if it was written; a table's mean."""
        delay = self.values.get("delay")
        if isinstance(delay, DelayTable):
            return delay.mean_ns
        return delay.ns if isinstance(delay, Duration) else None


@dataclass(slots=True, eq=False)
class LinkSettings:
    forward: Settings
    backward: Settings
    mtu: int
    mtu_path: Path

    @property
    def rtt_ns(self) -> int | None:
        """Both ways, if both were written."""
        there, back = self.forward.delay_ns, self.backward.delay_ns
        return None if there is None or back is None else there + back

    @property
    def impaired(self) -> bool:
        """Does it need an emulator, beyond a rate and a plain queue?"""
        return any(_impaired(way) for way in (self.forward, self.backward))


def _impaired(way: Settings) -> bool:
    queue = way.get("queue")
    return (
        way.delay_ns not in (None, 0)
        or isinstance(way.get("delay"), DelayTable)
        or any(way.get(key) for key in ("jitter", "distribution", "reorder", "loss", "corrupt", "duplicate"))
        or (queue is not None and queue.kind != "drop-tail")
    )


class Resolver:
    """Settings of every edge; edges about which nothing special was written share one object."""

    def __init__(self, spec: Spec) -> None:
        self._spec = spec
        self._common: dict[str, LinkSettings] = {}

    def of(self, edge: Edge) -> LinkSettings:
        special = self._spec.description.links.get(edge.name)
        if special is None and edge.settings is None:
            if edge.role not in self._common:
                self._common[edge.role] = self._resolve(edge, None)
            return self._common[edge.role]
        return self._resolve(edge, special)

    def _resolve(self, edge: Edge, special: Link | None) -> LinkSettings:
        description = self._spec.description
        layers: list[tuple[Path, Link]] = [((edge.role,), getattr(description, edge.role))]
        if edge.settings is not None:
            layers.append((edge.path, edge.settings))
        if special is not None:
            layers.append((("links", edge.name), special))
        base = layers[-1][0]
        forward, backward = Settings(base), Settings(base)
        mtu, mtu_path = description.mtu, ("mtu",)
        for path, link in layers:
            for way in (forward, backward):
                add(way, path, link)
            if link.mtu is not None:
                mtu, mtu_path = link.mtu, (*path, "mtu")  # type: ignore[assignment]
            for name, way in (("forward", forward), ("backward", backward)):
                own = getattr(link, name)
                if own is not None:
                    add(way, (*path, name), own)
        if (forward.delay_ns is None) != (backward.delay_ns is None):
            has, lacks = ("forward", "backward") if backward.delay_ns is None else ("backward", "forward")
            way = forward if backward.delay_ns is None else backward
            raise self._spec.error(
                way.path("delay"), f"{edge.name} has a delay {has} only: write one for {lacks} too", way.get("delay")
            )
        return LinkSettings(forward, backward, mtu, mtu_path)


def add(way: Settings, path: Path, link: Any) -> None:
    """What `link` says, written at `path`, goes into `way` in place of what was there."""
    for key in link.model_fields_set - _ABSENT:
        value = getattr(link, key)
        if value is not None and key != "mtu":
            way.values[key] = value
            way.paths[key] = (*path, key)
