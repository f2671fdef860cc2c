"""A monitor in a notebook: its status."""

from __future__ import annotations

from varcal._monitor.monitor import Monitor
from varcal._report.html.markup import el
from varcal._report.monitor.summarise import summarise_monitor


def status_html(monitor: Monitor) -> str:
    """Return the badge, the headline and the lede, in the style of the notebook."""
    summary = summarise_monitor(monitor)
    return el(
        "div",
        el("h3", f"{summary.badge}: ", summary.headline),
        el("p", summary.lede),
    )
