"""External emulators: drivers, a simulated box, and a conformance test for drivers (docs/hardware.md)."""
