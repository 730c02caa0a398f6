"""External emulators as links: what one can do, what is asked of it, how its driver is spoken to
(docs/how-to/labs/hardware.md).

Such a link is a cable between two cards of the host in the plan. A driver's file says what its devices can, so that
compiling asks no device. While a lab is up labs/runtime/keeper.py holds the driver and answers as a spinner does;
drivers and the simulated box are in extras/devices.
"""
