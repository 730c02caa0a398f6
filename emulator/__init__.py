"""The link, and external emulators in its place (`ewan.emulator.hardware`)."""
