"""External emulators as links: what one can do, what is asked of it, how its driver is spoken to (docs/hardware.md)."""
