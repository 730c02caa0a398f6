"""Description in, plan out: pure, deterministic, no I/O."""

from ewan.labs.compile.compiler import compile
from ewan.labs.compile.facts import HostFacts

__all__ = ["HostFacts", "compile"]
