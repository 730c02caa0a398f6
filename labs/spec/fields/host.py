"""The keys of hosts."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import Field, PlainValidator, WithJsonSchema, model_validator

from ewan.labs.base.model import Model
from ewan.labs.base.wording import nearest
from ewan.labs.spec.fields.pacing import HostPacing
from ewan.labs.spec.fields.stack import StackKeys

MACHINES = ("debian-12",)
"""Systems whose own kernel a machine boots; images/machine builds them."""


def _machine(value: object) -> str:
    if isinstance(value, str) and value in MACHINES:
        return value
    raise ValueError(f"unknown machine, {nearest(str(value), MACHINES)}")


MachineName = Annotated[str, PlainValidator(_machine), WithJsonSchema({"type": "string", "enum": list(MACHINES)})]


class Host(Model):
    """The settings of hosts."""

    what: ClassVar[str] = "key of a host"
    pacing: tuple[HostPacing, ...] = Field(
        (),
        description="the rate of what it sends, at its own exit; a list, where it differs between destinations; none "
        "if absent",
        examples=["{psp: 400Mbit/s}", "[{psp: 100Mbit/s, to: right1}, {psp: 400Mbit/s}]"],
    )

    stack: StackKeys | None = Field(
        None,
        description="what its TCP does, or the name of a profile; as every host of a lab does it if absent",
        examples=["windows-xp", "{window_scaling: off, sack: off}"],
    )
    machine: MachineName | None = Field(
        None,
        description="a machine of its own, emulated by QEMU, that boots this system's kernel (live, only `netns`); "
        "none if absent",
        examples=["debian-12"],
    )

    @model_validator(mode="before")
    @classmethod
    def _one(cls, value: Any) -> Any:
        """A single pacing stands for a list with one element."""
        if isinstance(value, dict) and "pacing" in value and not isinstance(value["pacing"], (list, tuple)):
            return {**value, "pacing": [value["pacing"]]}
        return value
