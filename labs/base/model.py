"""Common rules for groups of keys: unknown keys are refused; of some groups exactly one key is written, others may be
"none"."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, get_args

from pydantic import BaseModel, ConfigDict, model_validator


class Model(BaseModel):
    """A group of keys; unknown ones are refused."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        populate_by_name=False,
        model_title_generator=lambda model: model.__name__.removesuffix("Keys"),
    )
    what: ClassVar[str] = "key"

    @classmethod
    def words(cls) -> list[str]:
        """The keys of this group as people write them."""
        return [field.alias or name for name, field in cls.model_fields.items()]

    @classmethod
    def keys_at(cls, path: Iterable[str | int]) -> tuple[list[str], str]:
        """The keys that may stand at `path`, and what they are called."""
        here: type[Model] = cls
        for part in path:
            field = next((f for n, f in here.model_fields.items() if part in (n, f.alias)), None)
            model = _model_in(field.annotation) if field is not None else None
            here = model or here
        return here.words(), here.what


def _model_in(annotation: Any) -> type[Model] | None:
    """The model inside `Model | None`, `dict[str, Model]`, `tuple[Model, ...]`."""
    if isinstance(annotation, type) and issubclass(annotation, Model):
        return annotation
    return next((model for part in get_args(annotation) if (model := _model_in(part)) is not None), None)


class GroupOrNone(Model, defer_build=True):
    """A group that has its needed keys, as in the example; or the word "none", which stands for none of them."""

    needed: ClassVar[frozenset[str]]
    example: ClassVar[str]

    @property
    def asks_nothing(self) -> bool:
        """Return whether the group was written as "none"."""
        return self.needed.isdisjoint(self.model_fields_set)

    @model_validator(mode="before")
    @classmethod
    def _none(cls, value: Any) -> Any:
        if value == "none":
            return {}
        if not isinstance(value, dict) or cls.needed - value.keys():
            raise ValueError(f'write "{cls.example}" or "none"')
        return value


class OneOf(Model):
    """Exactly one of the keys; a bare word stands for that key with everything at its default."""

    @model_validator(mode="before")
    @classmethod
    def _word(cls, value: Any) -> Any:
        if isinstance(value, str):
            return {value: {}}
        if isinstance(value, dict):
            if len(value) != 1:
                raise ValueError(f"write exactly one of {', '.join(cls.words())}")
            return {key: {} if inner is None else inner for key, inner in value.items()}
        return value

    @property
    def kind(self) -> str:
        """The key that was written."""
        (name,) = self.model_fields_set
        return type(self).model_fields[name].alias or name

    @property
    def choice(self) -> Any:
        """The value of that key."""
        (name,) = self.model_fields_set
        return getattr(self, name)
