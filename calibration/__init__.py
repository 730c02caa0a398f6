"""Calibration: decides whether a lab may be believed. `verify_lab` measures a lab against its plan, in either clock."""

from ewan.calibration.certify import BatchLab, LiveLab, verify_lab

__all__ = ["BatchLab", "LiveLab", "verify_lab"]
