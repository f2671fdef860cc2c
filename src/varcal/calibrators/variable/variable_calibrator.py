"""The variable calibrator."""
from __future__ import annotations
from typing import Any, ClassVar
import numpy as np
from varcal._options import check_share, one_of, or_none
from varcal._threads import one_blas_thread
from varcal.calibrators._interface.calibrator import Calibrator
from varcal.calibrators._interface.fitted_variables import Schema
from varcal.calibrators._interface.held_out import row_counts, warn_of_sampling_weights
from varcal.calibrators._neutral.evaluate import in_blocks
from varcal.calibrators._neutral.steps import score
from varcal.calibrators.variable.dependence import Search, content_order
from varcal.calibrators.variable.two_classes import TILT, fit_two_classes

class VariableCalibrator(Calibrator):
    _state = ("model_", "schema_")
    _parameters: ClassVar = {"trees": one_of(True, False), "monotone": one_of(True, False), "preserve_ranking": one_of(True, False), "max_shift": or_none(check_share)}
    _uses_variables = True
    _uses_groups = True
    def __init__(self, *, trees=True, monotone=False, preserve_ranking=False, max_shift=None):
        self.trees, self.monotone, self.preserve_ranking, self.max_shift = trees, monotone, preserve_ranking, max_shift
    def _columns(self, rows):
        columns = self.schema_.align(rows.variables, unseen=-2)
        return [] if self.preserve_ranking and rows.n_classes == 2 else columns
    def _learn(self, rows):
        self.schema_ = Schema.of(rows.variables, "VariableCalibrator") if rows.variables else Schema((), (), ())
        columns = self._columns(rows)
        n_levels = [len(l) for l in self.schema_.levels[:len(columns)]]
        if rows.weight is not None:
            warn_of_sampling_weights(rows.weight)
            rows = rows.weighted(row_counts(rows.weight))
        order = content_order(rows.p, rows.y, [rows.weight, rows.groups, rows.time, *columns])
        search = Search(tuple(v.take(order) for v in rows.variables), order) if rows.look_for_blocks else None
        rows, columns = rows.take(order), [c[order] for c in columns]
        mass = np.ones(len(rows)) if rows.weight is None else rows.weight
        if rows.p.ndim == 2:
            from varcal.calibrators.variable.many_classes import fit_many_classes
            self.model_, self.record_ = fit_many_classes(rows.p, rows.y, columns, n_levels, mass, groups=rows.groups, time=rows.time, search=search, trees=self.trees, plain=self.preserve_ranking)
            return
        self.model_, self.record_ = fit_two_classes(rows.p, rows.y.astype(float), columns, n_levels, mass, groups=rows.groups, time=rows.time, search=search, trees=self.trees, monotone=self.monotone or self.preserve_ranking, tilt=TILT if self.preserve_ranking else 0.0)
    @one_blas_thread()
    def _answer(self, rows):
        columns = self._columns(rows)
        return in_blocks(self._steps(tuple(score(k) for k in range(rows.n_classes))), rows.p, columns, [len(l) for l in self.schema_.levels])
    def _steps(self, scores, *, exact=True):
        return self.model_.steps(scores[1] if len(scores)==2 else scores)
    def _describe(self):
        return "", []
