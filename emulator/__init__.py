"""The link, and external emulators in its place (`emulator.hardware`)."""
