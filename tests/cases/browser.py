"""Chromium, for the tests that look at pages."""

import importlib.util
import os
import shutil
from contextlib import contextmanager

import pytest

CHROMIUM = os.environ.get("VARCAL_CHROMIUM") or next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
MISSING = [
    name
    for name, found in {
        "Chromium (set VARCAL_CHROMIUM or install the package chromium)": CHROMIUM,
        "playwright": importlib.util.find_spec("playwright"),
        "axe-playwright-python": importlib.util.find_spec("axe_playwright_python"),
    }.items()
    if not found
]
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
skip_without_browser = pytest.mark.skipif(
    bool(MISSING), reason=f"not installed: {', '.join(MISSING)}"
)


@contextmanager
def open_browser():
    """Start Chromium, and end it afterwards."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield chromium
        chromium.close()
