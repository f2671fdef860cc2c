"""OnnxExport: a calibrator as an ONNX model, and how it is run and checked."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from varcal._arrays import AnyArray, Floats
from varcal._export.exported import Checked, Export, compare, heading
from varcal._export.onnx_graph import OnnxGraph
from varcal._export.program import Program, level_text, level_texts
from varcal._export.random_rows import RandomRows
from varcal._files.atomic import whole_file
from varcal._input.variables import Variable
from varcal.calibrators.rows import score_rows
from varcal.exceptions import import_library

if TYPE_CHECKING:
    from varcal.calibrators import Calibrator


#: Rows that are run together, so that what is computed for them stays in cache.
BLOCK = 2_048


@dataclass(frozen=True, eq=False, repr=False)
class OnnxExport(Export):
    """A fitted calibrator as an ONNX model.

    Its inputs are ``p``, of shape (n,) for two classes and (n, K) for more, and one of shape (n,)
    for each variable that it reads, by name: numbers in double precision, NaN where they are
    missing, dates as seconds since 1970, and levels as strings. Its output ``probabilities`` has
    shape (n, K); scores that `predict_proba` refuses give NaN.

    Attributes
    ----------
    model : onnx.ModelProto
        The model. Its metadata hold random rows with what `predict_proba` gives for them.
    missing : dict of str to str
        The string that stands for a missing level of each category: "", unless that is a level.
    rows : RandomRows
        The random rows.
    """

    model: Any
    missing: dict[str, str]

    def _what(self) -> tuple[str, int, str]:
        return "an ONNX model", self.model.ByteSize(), "model"

    def save(self, path: str | PathLike[str]) -> None:
        """Write the model to a file, completely or not at all."""
        with whole_file(path) as draft:
            draft.write_bytes(self.model.SerializeToString())

    def run(self, p: object, v: object = None) -> Floats:
        """Return what onnxruntime gives for rows, which are given as to `predict_proba`."""
        given = score_rows(p, v, len(self._program.outputs))
        return self._run(given.columns(), self._program.matched(given.variables))

    def check(self) -> Checked:
        """Compare random rows, run by onnxruntime, with what `predict_proba` gives for them."""
        return compare(self._run(self.rows.p, self.rows.variables), self.rows.expected)

    @cached_property
    def _session(self) -> Any:
        runtime = import_library("onnxruntime", "running an ONNX model")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = 1
        return runtime.InferenceSession(
            self.model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )

    def _run(self, p: Floats, variables: tuple[Variable, ...]) -> Floats:
        feeds = self._feeds(p, variables)
        answer = np.empty((len(p), len(self._program.outputs)))
        for begin in range(0, len(p), BLOCK):
            part = slice(begin, begin + BLOCK)
            block = {name: values[part] for name, values in feeds.items()}
            (answer[part],) = self._session.run(None, block)
        return answer

    def _feeds(self, p: Floats, variables: tuple[Variable, ...]) -> dict[str, AnyArray]:
        names = [each.name for each in self.model.graph.input]
        feeds: dict[str, AnyArray] = {"p": p[:, 1] if self._program.binary else p}
        own = [name for name in names if name != "p"]
        by_input = {self._input_of(k): k for k in self._program.used}
        for name in own:
            variable = variables[by_input[name]]
            if variable.kind == "levels":
                feeds[name] = _texts(variable, self.missing[name])
            else:
                feeds[name] = np.asarray(variable.values, dtype=np.float64)
        return feeds

    def _input_of(self, k: int) -> str:
        return OnnxGraph.input_name(self._program.schema.names[k])


def _texts(variable: Variable, missing: str) -> AnyArray:
    shown = [*map(level_text, variable.levels), missing]
    return np.array(shown, dtype=object)[variable.values]


def to_onnx(calibrator: Calibrator) -> OnnxExport:
    """Export a calibrator as ONNX; see `Calibrator.to_onnx`."""
    onnx = import_library("onnx", "exporting to ONNX")
    program = Program.of(calibrator)
    for k in program.used:
        level_texts(program, k)
    rows = RandomRows.of(program)
    graph = OnnxGraph(onnx, program)
    model = graph.model()
    model.doc_string = " ".join(heading(program))
    onnx.checker.check_model(model)
    names = [program.schema.names[k] for k in program.used]
    random_rows = {
        "p": rows.p.tolist(),
        "v": {name: _plain(rows.values(k)) for name, k in zip(names, program.used, strict=True)},
        "expected": rows.expected.tolist(),
    }
    for key, value in (
        ("classes", [str(label) for label in program.classes]),
        ("missing levels", graph.missing),
        ("random rows", random_rows),
    ):
        entry = model.metadata_props.add()
        entry.key, entry.value = f"varcal {key}", json.dumps(value)
    return OnnxExport(rows, program, model, graph.missing)


def _plain(values: list[Any]) -> list[Any]:
    """Return values for JSON, which has no infinite numbers."""
    return [
        str(value) if isinstance(value, float) and np.isinf(value) else value for value in values
    ]
