"""Expressions of a lab: what is true, what a known mistake gives, what must hold. Pure.

In: text like `rtt + 8 * size / rate` or `metric("rtt p95", buffer="10BDP")`; names with their values, functions. Out: a
number, a word, or whether something holds. Names and functions are a closed vocabulary, held against it when a lab is
read; simpleeval evaluates, of which no more is let in than `_NODES` lists. What is wrong is a ValueError of one line.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import simpleeval

from ewan.extras.course import amounts
from ewan.extras.course.measures.base import NoValueError, Value, every
from ewan.labs.base.wording import nearest

Names = Mapping[str, "Value | Mapping[str, Value]"]
MOST_LETTERS = 1000


def _amount(text: str) -> float:
    """A quantity as it is written, in SI base units: `amount("200ms")` is 0.2."""
    return float(amounts.read(text))


MATHEMATICS: Mapping[str, Callable[..., Any]] = {
    "sqrt": math.sqrt,
    "log": math.log,
    "log2": math.log2,
    "log10": math.log10,
    "exp": math.exp,
    "abs": abs,
    "min": min,
    "max": max,
    "round": round,
    "floor": math.floor,
    "ceil": math.ceil,
    "amount": _amount,
}
CONSTANTS: Mapping[str, Value] = {"pi": math.pi}

_NODES: tuple[type[ast.AST], ...] = (
    *(ast.Expression, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Call, ast.keyword),
    *(ast.Constant, ast.Name, ast.Attribute, ast.Load),
    *(ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.USub, ast.UAdd),
    *(ast.And, ast.Or, ast.Not, ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE),
)
SETTINGS = "settings"
"""The name of what a student chose: `settings.send_buffer`."""


@dataclass(frozen=True, slots=True)
class MeasureCall:
    """A call of a measure as it is written. `keywords`: those that are constants; None for what is computed."""

    name: str
    keywords: Mapping[str, Value | None] = field(default_factory=dict)


@lru_cache(maxsize=1024)
def _tree(text: str) -> ast.Expression:
    if len(text) > MOST_LETTERS:
        raise ValueError(f"is longer than {MOST_LETTERS} letters: write less")
    try:
        return ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ValueError('is no expression: write one like "rate * rtt / 8"') from None


def check(text: str, names: Collection[str], settings: Collection[str] = ()) -> None:
    """ValueError for what is no expression of these names (`settings`: of what a student chooses), the measures and
    mathematics."""
    known, called = set(names) | set(CONSTANTS), {*MATHEMATICS, *every()}
    tree = _tree(text)
    functions = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    owners = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id=name)):
                if name not in called:
                    raise ValueError(f'unknown function "{name}": {nearest(name, sorted(called))}')
                if any(each.arg is None for each in node.keywords):
                    raise ValueError("write each argument out")
            case ast.Call():
                raise ValueError("calls what is no function: write a function's name")
            case ast.Attribute(value=ast.Name(id="settings"), attr=name):
                if name not in settings:
                    raise ValueError(f'unknown setting "{name}": {nearest(name, sorted(settings) or ["none"])}')
            case ast.Name(id=name) if id(node) not in functions and id(node) not in owners:
                if name not in known:
                    raise ValueError(f'unknown name "{name}": {nearest(name, sorted(known))}')
            case ast.Attribute():
                raise ValueError("a name has no parts: write only the name")
            case ast.Constant(value=value) if not isinstance(value, str | int | float | bool):
                raise ValueError("write numbers and words")
            case _ if not isinstance(node, _NODES):
                raise ValueError(f"{type(node).__name__} is no part of expressions: write numbers, names and functions")


def names_in(text: str) -> set[str]:
    """The names that an expression uses, functions aside."""
    tree = _tree(text)
    functions = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and id(node) not in functions}


def calls(text: str) -> Iterator[MeasureCall]:
    """The calls of measures in an expression: what it needs of runs."""
    for node in ast.walk(_tree(text)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in every():
            given = {
                str(each.arg): each.value.value if isinstance(each.value, ast.Constant) else None
                for each in node.keywords
            }
            yield MeasureCall(node.func.id, {name: _plain(value) for name, value in given.items()})


def _plain(value: Any) -> Value | None:
    return value if isinstance(value, str | int | float | bool) else None


def evaluate(text: str, names: Names, measures: Mapping[str, Callable[..., Value]]) -> Value:
    """The value of an expression that `check` let through; `measures`: those of a student's runs.

    NoValueError where a run does not have what is asked for, or where no number comes out.
    """
    evaluator = simpleeval.SimpleEval(functions={**MATHEMATICS, **measures}, names={**CONSTANTS, **names})
    try:
        found = evaluator.eval(text, previously_parsed=_tree(text).body)
    except NoValueError:
        raise
    except ZeroDivisionError:
        raise NoValueError(f"{text}: divides by zero") from None
    except (simpleeval.InvalidExpression, ArithmeticError, ValueError, TypeError, KeyError) as error:
        raise NoValueError(f"{text}: {error}") from None
    if isinstance(found, bool | str):
        return found
    number = float(found)
    if not math.isfinite(number):
        raise NoValueError(f"{text}: is no finite number")
    return number
