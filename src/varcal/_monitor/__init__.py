"""Monitors: calibration watched batch by batch, with false alarms under control."""
