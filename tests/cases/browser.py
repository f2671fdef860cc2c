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
#: How long a page may take over anything, in milliseconds: not a test of speed, but an end.
LIMIT = 120_000
skip_without_browser = pytest.mark.skipif(
    bool(MISSING), reason=f"not installed: {', '.join(MISSING)}"
)


@contextmanager
def open_browser():
    """Start Chromium, and end it afterwards, also if a test has failed."""
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=LIMIT)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS, timeout=LIMIT)
        try:
            yield chromium
        finally:
            chromium.close()


def new_page(browser, **options):
    """Open an empty page in a context of its own, whose operations all end within the limit."""
    context = browser.new_context(**options)
    context.set_default_timeout(LIMIT)
    return context.new_page()
