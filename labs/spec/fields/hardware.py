"""The keys of a link that an external emulator is: its driver, where it is, and between which of this machine's cards.

What the devices of a driver can is read from the file beside the driver, without the program and without a device.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, ClassVar

from pydantic import Field, PlainValidator, PrivateAttr, ValidationInfo, WithJsonSchema

from ewan.labs.base.model import Model
from ewan.labs.base.wording import nearest
from ewan.labs.hardware import catalogue
from ewan.labs.hardware.abilities import DeviceModel as DeviceModel

MOST_LETTERS = 255
_CARD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,14}")


def _line(value: object) -> str:
    """A text that is handed to a driver: one line."""
    if isinstance(value, (str, int)) and not isinstance(value, bool):
        text = str(value)
        if text and len(text) <= MOST_LETTERS and text.isprintable():
            return text
    raise ValueError(f"write a text of one line and at most {MOST_LETTERS} characters")


def _card(value: object) -> str:
    if isinstance(value, str) and _CARD.fullmatch(value):
        return value
    raise ValueError('write the name of an interface of this machine, like "eth2"')


def _options(value: object) -> dict[str, str]:
    if not isinstance(value, dict):
        raise ValueError("is a group of keys: write its keys below it")
    return {_line(key): _line(each) for key, each in value.items()}


def _driver(value: object, info: ValidationInfo) -> tuple[str, dict[str, DeviceModel]]:
    if not isinstance(value, str) or not value or len(value) > MOST_LETTERS:
        raise ValueError(f"write the name of a driver, {', '.join(catalogue.names())}, or the path of a program")

    def read(name: str) -> str:
        found = (info.context or {}).get("read")
        if found is None:
            raise ValueError(f"{name}: only a lab's description names files: write the name of a driver")
        return str(found(name))

    return value, catalogue.models(value, read)


def _text(words: str, example: str) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "title": words, "examples": [example]})


OneLine = Annotated[str, PlainValidator(_line), _text("text", "/dev/ttyUSB0")]
CardName = Annotated[str, PlainValidator(_card), _text("interface", "eth2")]
DriverName = Annotated[tuple[str, dict[str, DeviceModel]], PlainValidator(_driver), _text("driver", "gtrcnet")]
Options = Annotated[
    dict[str, str], PlainValidator(_options), WithJsonSchema({"type": "object", "words": "texts by name"})
]


class HardwareKeys(Model):
    """An external emulator in place of our own link."""

    what: ClassVar[str] = "key of an external emulator"
    driver_: DriverName = Field(
        alias="driver",
        description="a driver of ewan's own (`ewan driver list`), or the path of one, relative to the description",
        examples=["gtrcnet"],
    )
    address: OneLine = Field(description="where the device is, in the driver's own words", examples=["/dev/ttyUSB0"])
    ports: tuple[CardName, CardName] = Field(
        description="this machine's cards that are cabled to the device's first and second port; `forward` goes "
        "from the first",
        examples=["[eth2, eth3]"],
    )
    model: OneLine | None = Field(
        None, description="model of the device (default: the driver's first one)", examples=["gtrcnet-10"]
    )
    options: Options = Field({}, description="further texts for the driver; none if absent")
    _device: DeviceModel = PrivateAttr()

    def model_post_init(self, context: Any) -> None:
        """Finds what the model can; ValueError where the driver knows no such model."""
        _, models = self.driver_
        name = self.model or next(iter(models))
        if name not in models:
            raise ValueError(f"model {name}: there is no such model, {nearest(name, models)}")
        if self.ports[0] == self.ports[1]:
            raise ValueError(f"ports: both are {self.ports[0]}: write two cards")
        self._device = models[name]

    @property
    def driver(self) -> str:
        """As it was written."""
        return self.driver_[0]

    @property
    def device(self) -> DeviceModel:
        """The abilities of the device."""
        return self._device
