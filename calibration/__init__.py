"""Calibration: decides whether a lab may be believed. `verify` measures a running lab against its plan,
`verify_virtual` one of the virtual clock."""

from calibration.certify import verify, verify_virtual

__all__ = ["verify", "verify_virtual"]
