"""Experiments: a scenario's runs from reservation to archive, in either clock; resumed, repeated, compared.

In: scenarios, and the parts that `ewan.py` gives. Out: directories below results/ (experiment.json says what is there).
"""

from generator.engine.engine import Engine, resume, run
from generator.engine.parts import Facts, Parts
from generator.engine.preparation import Prepared, jobs, prepare

__all__ = ["Engine", "Facts", "Parts", "Prepared", "jobs", "prepare", "resume", "run"]
