"""Description in, plan out: pure, deterministic, no I/O."""

from labs.compile.compiler import compile
from labs.compile.facts import HostFacts

__all__ = ["HostFacts", "compile"]
