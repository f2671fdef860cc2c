"""Attempts to break varcal: kills, full disks, forged files, fuzzing, interrupts and load.

See README.md in this folder, and docs/trust.md for what was found.
"""
