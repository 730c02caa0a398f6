"""The keys of a file of transfer requests as pydantic models.

Comes in: plain data, as YAML gave it. Goes out: typed values, or pydantic's errors, which `ewan.labs.spec.translate`
puts into words.
"""

from __future__ import annotations

from collections import Counter
from typing import ClassVar

from pydantic import Field, model_validator

from ewan.generator.scenario.fields import CongestionText, LabText, Text
from ewan.generator.scenario.laws import TimeText, VolumeText
from ewan.labs.base.model import Model
from ewan.labs.base.units import Duration
from ewan.labs.base.values import Name, RateText

MOST_REQUESTS = 100
"""The search for the best plan takes seconds with so many."""


class RequestDescription(Model):
    """One transfer that is asked for."""

    what: ClassVar[str] = "key of a request"
    name: Name = Field(description="of the request, and of its step when it is run", examples=["first"])
    from_: Text = Field(alias="from", description="the host that sends", examples=["left1"])
    to: Text = Field(description="the host that receives", examples=["right1"])
    volume: VolumeText = Field(description="vol(r), payload", examples=["500MB", "30Gbit"])
    start: TimeText = Field(Duration(0), description="rt(r): it is there from then on; 0s if absent", examples=["10s"])
    deadline: TimeText | None = Field(
        None, description="dt(r): all must have come by then; none if absent", examples=["60s"]
    )
    rate: RateText | None = Field(
        None,
        description="max-rate(r), counted as links count, with headers; what the path takes if absent",
        examples=["1Gbit/s"],
    )


class TransfersDescription(Model):
    """All keys of a file of requests."""

    name: Name | None = Field(None, description="the file's if absent", examples=["transfers"])
    lab: LabText = Field(
        description="a lab description, or the path of one, or its name beside the file or in labs/library",
        examples=["dumbbell"],
    )
    congestion: CongestionText | None = Field(
        None, description="congestion control of all transfers; cubic if absent", examples=["bic"]
    )
    margin: TimeText = Field(
        Duration(0),
        description="allowed to each transfer beyond its volume at its rate, for its connection and slow start; 0s if "
        "absent",
        examples=["1s"],
    )
    requests: tuple[RequestDescription, ...] = Field(description="what is to be transferred")

    @model_validator(mode="after")
    def _once(self) -> TransfersDescription:
        for name, times in Counter(each.name for each in self.requests).items():
            if times > 1:
                raise ValueError(f"two requests are called {name}: write another name for one")
        if not self.requests:
            raise ValueError("has no requests: write at least one")
        if len(self.requests) > MOST_REQUESTS:
            raise ValueError(f"has {len(self.requests)} requests: write at most {MOST_REQUESTS}")
        return self
