"""Figure: one of our numbers next to the published one, with a verdict."""

from __future__ import annotations

import math
from dataclasses import dataclass

from reproduction.published import Published, Target

#: The allowed distance from the value that the authors recorded: 1e-5 percentage points for
#: VCE(v*), two units of the sixth decimal of a fraction otherwise.
RECORD_TOLERANCE = {"VCE(v*)": 1e-5}
SHARE_TOLERANCE = 2e-6


@dataclass(frozen=True)
class Figure:
    """A number and its published value.

    Attributes
    ----------
    target : (method, measure, variable)
        What the number is.
    value : float
        Ours, in percent.
    published : Published or None
        The paper's.
    same_model : bool
        Whether our predictions are those of the paper's model, so that both must agree.
    """

    target: Target
    value: float
    published: Published | None = None
    same_model: bool = True

    def __str__(self) -> str:
        what = " ".join(part for part in self.target if part)
        return f"{what}: {self.value:.4f}%, published {self.value - self.difference:.4f}%"

    @property
    def difference(self) -> float:
        """Ours minus the published value (the recorded one if known), in percentage points."""
        if self.published is None:
            return math.nan
        if self.published.recorded is None:
            return self.value - float(self.published.printed)
        scale = 1 if self.target[1] == "VCE(v*)" else 100
        return self.value - scale * self.published.recorded

    @property
    def prints_equal(self) -> bool:
        """Whether ours rounds to the printed digits."""
        if self.published is None or not self.published.printed:
            return False
        decimals = len(self.published.printed.partition(".")[2])
        return f"{self.value:.{decimals}f}" == self.published.printed

    @property
    def failed(self) -> bool:
        """Whether the two should agree and do not."""
        if self.published is None or not self.same_model:
            return False
        if self.published.recorded is not None:
            allowed = RECORD_TOLERANCE.get(self.target[1], 100 * SHARE_TOLERANCE)
            if not abs(self.difference) <= allowed:
                return True
            return bool(
                self.published.printed and not self.prints_equal and not self.published.remark
            )
        return not self.prints_equal

    @property
    def verdict(self) -> str:
        """How ours compares with the published value.

        >>> Figure(("Beta calibration", "ECE", ""), 1.64612, Published("1.65", 0.016461)).verdict
        'equal'
        >>> Figure(("Beta calibration", "ECE", ""), 1.7, Published("1.65", 0.016461)).verdict
        'differs by +0.0539'
        """
        if self.published is None:
            return ""
        if not self.same_model:
            return "another model"
        if self.failed:
            return f"differs by {self.difference:+.4f}"
        if self.published.remark and not self.prints_equal:
            return f"equal to the authors' output; {self.published.remark}"
        return "equal" if self.published.printed else "equal to the authors' output"
