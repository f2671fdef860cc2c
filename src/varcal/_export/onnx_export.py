"""OnnxExport: a calibrator as an ONNX model, and how it is written, run and checked.

The model is in double precision throughout. Numbers, positions and conditions are columns of shape
(n, 1), vectors have shape (n, width), so that operations on both need no reshaping.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from varcal._arrays import AnyArray, Floats
from varcal._export.exported import Checked, Export, RandomRows, compare, heading
from varcal._export.program import Program, level_text
from varcal._files.atomic import whole_file
from varcal._input.variables import Variable
from varcal.calibrators.rows import score_rows
from varcal.calibrators.steps import Curve, Forest, Step, sorted_steps
from varcal.exceptions import import_library

if TYPE_CHECKING:
    from varcal.calibrators import Calibrator


#: Rows that are run together, so that what is computed for them stays in cache.
BLOCK = 2_048
#: The version of ONNX's operators, of 2022; onnxruntime knows it from version 1.12 on.
OPSET = 17
#: Cuts that each number is compared with; more are searched in two rounds.
_FEW_CUTS = 64

_NODES = {
    "add": "Add",
    "subtract": "Sub",
    "multiply": "Mul",
    "divide": "Div",
    "minimum": "Min",
    "maximum": "Max",
    "log": "Log",
    "exp": "Exp",
    "sqrt": "Sqrt",
    "abs": "Abs",
    "less": "Less",
    "at_most": "LessOrEqual",
    "equal": "Equal",
    "where": "Where",
    "missing": "IsNaN",
}


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
        return _Graph.input_name(self._program.schema.names[k])


def _texts(variable: Variable, missing: str) -> AnyArray:
    shown = [*map(level_text, variable.levels), missing]
    return np.array(shown, dtype=object)[variable.values]


def to_onnx(calibrator: Calibrator) -> OnnxExport:
    """Export a calibrator as ONNX; see `Calibrator.to_onnx`."""
    onnx = import_library("onnx", "exporting to ONNX")
    program = Program.of(calibrator)
    for k in program.used:
        program.level_texts(k)
    rows = RandomRows.of(program)
    graph = _Graph(onnx, program)
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


def missing_text(texts: list[str]) -> str:
    """Return the text that stands for a missing level: "" unless that is a level.

    >>> missing_text(["a"]), missing_text(["", "a"])
    ('', '<missing>')
    """
    found = "" if "" not in texts else "<missing>"
    while found in texts:
        found += "_"
    return found


class _Graph:
    """Nodes and constants of a graph."""

    def __init__(self, onnx: Any, program: Program) -> None:
        self._helper, self._types = onnx.helper, onnx.TensorProto
        self._numpy = onnx.numpy_helper
        self.program = program
        self.nodes: list[Any] = []
        self.constants: dict[Any, Any] = {}
        self.inputs: list[Any] = []
        self.missing: dict[str, str] = {}
        self._found: dict[int, str] = {}
        self._read: dict[int, str] = {}

    def model(self) -> Any:
        """Build the model; its output is ``probabilities``, one column per class."""
        self._add_scores()
        for step in sorted_steps(self.program.outputs):
            self._found[id(step)] = self._step(step)
        answers = [self._found[id(step)] for step in self.program.outputs]
        found = self._node("Concat", *answers, axis=1)
        self._node("Where", self._valid(), found, self._constant([[math.nan]]), out="probabilities")
        k = len(self.program.outputs)
        output = self._value("probabilities", self._types.DOUBLE, ["rows", k])
        constants = list(self.constants.values())
        graph = self._helper.make_graph(self.nodes, "calibrator", self.inputs, [output], constants)
        opsets = [
            self._helper.make_opsetid(domain, n) for domain, n in (("", OPSET), ("ai.onnx.ml", 3))
        ]
        return self._helper.make_model(
            graph, opset_imports=opsets, ir_version=8, producer_name="varcal"
        )

    def _value(self, name: str, kind: int, shape: list[Any]) -> Any:
        return self._helper.make_tensor_value_info(name, kind, shape)

    def _node(self, op: str, *args: str, out: str = "", domain: str = "", **attributes: Any) -> str:
        out = out or f"t{len(self.nodes)}"
        self.nodes.append(
            self._helper.make_node(
                op, list(args), [out], name=out, domain=domain or None, **attributes
            )
        )
        return out

    def _constant(self, value: Any, kind: Any = np.float64) -> str:
        array = np.ascontiguousarray(value, dtype=kind)
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self.constants:
            name = f"c{len(self.constants)}"
            self.constants[key] = self._numpy.from_array(array, name)
        return str(self.constants[key].name)

    def _column(self, name: str) -> str:
        return self._node("Unsqueeze", name, self._constant([1], np.int64))

    def _add_scores(self) -> None:
        if self.program.binary:
            self.inputs.append(self._value("p", self._types.DOUBLE, ["rows"]))
            self._scores = self._column("p")
        else:
            shape = ["rows", len(self.program.outputs)]
            self.inputs.append(self._value("p", self._types.DOUBLE, shape))
            self._scores = "p"

    def _valid(self) -> str:
        """Return whether the scores of a row are probabilities."""
        zero, one = self._constant([[0.0]]), self._constant([[1.0]])
        low = self._node("ReduceMin", self._scores, axes=[1], keepdims=1)
        high = self._node("ReduceMax", self._scores, axes=[1], keepdims=1)
        inside = self._node(
            "And", self._node("LessOrEqual", zero, low), self._node("LessOrEqual", high, one)
        )
        # A missing score need not be the least or the largest.
        total = self._reduced("ReduceSum", self._scores)
        inside = self._node("And", inside, self._node("Not", self._node("IsNaN", total)))
        if self.program.binary:
            return inside
        apart = self._node("Abs", self._node("Sub", total, one))
        near = self._constant([[self.program.sum_tolerance]])
        return self._node("And", inside, self._node("LessOrEqual", apart, near))

    def _reduced(self, op: str, name: str) -> str:
        if op == "ReduceSum":  # the only one that takes its axes as an input
            return self._node(op, name, self._constant([1], np.int64), keepdims=1)
        return self._node(op, name, axes=[1], keepdims=1)

    def _step(self, step: Step) -> str:
        args = [self._found[id(arg)] for arg in step.args]
        if step.op in _NODES:
            return self._node(_NODES[step.op], *args)
        rule: Callable[..., str] = getattr(self, f"_of_{step.op}")
        return rule(step, *args)

    def _of_score(self, step: Step) -> str:
        if self.program.binary:
            return self._scores
        return self._node("Gather", "p", self._constant([step.data], np.int64), axis=1)

    def _of_number(self, step: Step) -> str:
        if step.data not in self._read:
            self._read[step.data] = self._number_input(step)
        return self._read[step.data]

    def _of_code(self, step: Step) -> str:
        if step.data not in self._read:
            self._read[step.data] = self._code_input(step)
        return self._read[step.data]

    def _number_input(self, step: Step) -> str:
        name = self.input_name(self.program.schema.names[step.data])
        self.inputs.append(self._value(name, self._types.DOUBLE, ["rows"]))
        return self._column(name)

    def _code_input(self, step: Step) -> str:
        k = step.data
        name, texts = self.input_name(self.program.schema.names[k]), self.program.level_texts(k)
        self.inputs.append(self._value(name, self._types.STRING, ["rows"]))
        self.missing[name] = missing_text(texts)
        codes = self._node(
            "LabelEncoder",
            name,
            domain="ai.onnx.ml",
            keys_strings=[*texts, self.missing[name]],
            values_int64s=[*range(len(texts)), len(texts) + 1],
            default_int64=len(texts),
        )
        return self._column(codes)

    @staticmethod
    def input_name(name: str) -> str:
        """Return the name of the input of a variable; those of score and result are taken."""
        return f"v_{name}" if name in ("p", "probabilities") else name

    def _of_constant(self, step: Step) -> str:
        if isinstance(step.data, int):
            return self._constant([[step.data]], np.int64)
        return self._constant(np.reshape(step.data, (1, -1)))

    def _of_among(self, step: Step, position: str) -> str:
        size = len(self.program.schema.levels[step.args[0].data]) + 2
        held = np.isin(np.arange(size), step.data)[:, None]
        return self._rows(self._constant(held, np.bool_), position)

    def _rows(self, table: str, position: str) -> str:
        at = self._node("Squeeze", position, self._constant([1], np.int64))
        return self._node("Gather", table, at, axis=0)

    def _of_find(self, step: Step, x: str) -> str:
        cuts: Floats = step.data
        if len(cuts) <= _FEW_CUTS:
            return self._below(x, self._constant(cuts[None, :]))
        width = math.isqrt(len(cuts) - 1) + 1
        blocks = -(-len(cuts) // width)
        # In the block after the last one no cut is below.
        padded = np.full((blocks + 1) * width, np.inf)
        padded[: len(cuts)] = cuts
        tables = padded.reshape(blocks + 1, width)
        block = self._below(x, self._constant(tables[None, :-1, -1]))
        inside = self._below(x, self._rows(self._constant(tables), block))
        passed = self._node("Mul", block, self._constant([[width]], np.int64))
        return self._node("Add", passed, inside)

    def _below(self, x: str, cuts: str) -> str:
        """Return how many cuts are below each number."""
        below = self._node("Cast", self._node("Greater", x, cuts), to=self._types.INT32)
        return self._node("Cast", self._reduced("ReduceSum", below), to=self._types.INT64)

    def _of_take(self, step: Step, position: str) -> str:
        table: AnyArray = step.data
        return self._rows(self._constant(table if step.width else table[:, None]), position)

    def _of_curve(self, step: Step, x: str) -> str:
        shape: Curve = step.data
        low, high = (self._constant([[shape.knots[k]]]) for k in (0, -1))
        inside = self._node("Min", self._node("Max", x, low), high)
        at = self._of_find(Step("find", step.args, shape.knots[1:-1]), inside)
        row = self._rows(self._constant(shape.lines), at)
        width = step.width or 1
        ends = [0, 1, 1 + width, 1 + 2 * width]
        knot, height, slope = (
            self._of_part(Step("part", data=each), row) for each in pairwise(ends)
        )
        return self._node("Add", height, self._node("Mul", slope, self._node("Sub", inside, knot)))

    def _of_choose(self, step: Step, position: str, *options: str) -> str:
        cells, width = self._node("Concat", *options, axis=1), step.width or 1
        if width > 1:
            first = self._node("Mul", position, self._constant([[width]], np.int64))
            position = self._node("Add", first, self._constant([[*range(width)]], np.int64))
        return self._node("GatherElements", cells, position, axis=1)

    def _of_trees(self, step: Step, *numbers: str) -> str:
        """Walk all trees at once: one column per tree, one round per level."""
        forest: Forest = step.data
        values = [self._node("Cast", each, to=self._types.DOUBLE) for each in numbers]
        columns = self._node("Concat", *values, axis=1)
        n_trees, inner = forest.cut.shape
        variable = self._constant(forest.variable.ravel(), np.int64)
        cut, leaf = self._constant(forest.cut.ravel()), self._constant(forest.value.ravel())
        first = np.arange(n_trees)[None, :]
        begin = self._constant(first * inner, np.int64)
        # A column of zeros for every row.
        zero = self._node("Mul", self._cast(numbers[0]), self._constant([[0]], np.int64))
        node = self._node("Add", zero, self._constant(np.zeros_like(first), np.int64))
        one = self._constant([[1]], np.int64)
        for _ in range(forest.depth):
            at = self._node("Add", node, begin)
            read = self._node("GatherElements", columns, self._node("Gather", variable, at), axis=1)
            right = self._cast(self._node("Greater", read, self._node("Gather", cut, at)))
            twice = self._node("Add", node, node)
            node = self._node("Add", self._node("Add", twice, one), right)
        leaves = self._constant(first * (inner + 1) - inner, np.int64)
        at = self._node("Add", node, leaves)
        return self._reduced("ReduceSum", self._node("Gather", leaf, at))

    def _cast(self, name: str) -> str:
        return self._node("Cast", name, to=self._types.INT64)

    def _of_join(self, step: Step, *parts: str) -> str:
        return self._node("Concat", *parts, axis=1)

    def _of_part(self, step: Step, x: str) -> str:
        begin, end = (self._constant([k], np.int64) for k in step.data)
        return self._node("Slice", x, begin, end, self._constant([1], np.int64))

    def _of_item(self, step: Step, x: str) -> str:
        return self._node("Gather", x, self._constant([step.data], np.int64), axis=1)

    def _of_arrange(self, step: Step, x: str) -> str:
        return self._node("Gather", x, self._constant(step.data, np.int64), axis=1)

    def _of_dot(self, step: Step, x: str) -> str:
        return self._node("MatMul", x, self._constant(step.data))

    def _of_total(self, step: Step, x: str) -> str:
        return self._reduced("ReduceSum", x)

    def _of_largest(self, step: Step, x: str) -> str:
        return self._reduced("ReduceMax", x)

    def _of_top(self, step: Step, x: str) -> str:
        return self._node("ArgMax", x, axis=1, keepdims=1)

    def _of_sigmoid(self, step: Step, x: str) -> str:
        one = self._constant([[1.0]])
        return self._node(
            "Div", one, self._node("Add", one, self._node("Exp", self._node("Neg", x)))
        )
