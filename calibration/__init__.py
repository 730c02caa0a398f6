"""Calibration: decides whether a lab may be believed. `verify` measures a running lab against its plan."""

from calibration.certify import verify

__all__ = ["verify"]
