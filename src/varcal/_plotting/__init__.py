"""Pictures of results, drawn with matplotlib; the `plot` methods of results import them late.

Nothing here is public, and no statistic is computed here.
"""

from __future__ import annotations

from varcal.exceptions import import_library

import_library("matplotlib", "plot()")
