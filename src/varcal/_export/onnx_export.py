"""OnnxExport: a calibrator as an ONNX model, and how it is written, run and checked.

The model is in double precision throughout. Numbers, positions and conditions are columns of shape
(n, 1), vectors have shape (n, width), so that operations on both need no reshaping.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from varcal._arrays import AnyArray, Floats
from varcal._export.exported import UNSEEN, Checked, Export, RandomRows, compare, heading
from varcal._export.program import Program
from varcal._files.atomic import whole_file
from varcal._input.variables import Variable
from varcal.calibrators.rows import score_rows
from varcal.calibrators.steps import Curve, Forest, Step, sorted_steps
from varcal.exceptions import InputError, import_library

if TYPE_CHECKING:
    from varcal.calibrators import Calibrator

#: Rows that are run together, so that what is computed for them stays in cache.
BLOCK = 2_048
#: The version of ONNX's operators, of 2022; onnxruntime knows it from version 1.12 on.
OPSET = 17

_NODES = {
    "add": "Add", "subtract": "Sub", "multiply": "Mul", "divide": "Div", "minimum": "Min",
    "maximum": "Max", "log": "Log", "exp": "Exp", "sqrt": "Sqrt", "abs": "Abs", "floor": "Floor",
    "sigmoid": "Sigmoid", "less": "Less", "at_most": "LessOrEqual", "equal": "Equal",
    "where": "Where", "missing": "IsNaN",
}  # fmt: skip


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
        The model. Its metadata hold the labels of the classes, and `missing`.
    missing : dict of str to str
        The string that stands for a missing level of each category: "", unless that is a level.
    rows : RandomRows
        The random rows.
    """

    model: Any
    missing: dict[str, str]

    @property
    def _size(self) -> int:
        return int(self.model.ByteSize())

    def save(self, path: str | PathLike[str]) -> None:
        """Write the model to a file, completely or not at all."""
        with whole_file(path) as draft:
            draft.write_bytes(self.model.SerializeToString())

    def run(self, p: object, v: object = None) -> Floats:
        """Return what onnxruntime gives for rows, which are given as to `predict_proba`."""
        given = score_rows(p, v, len(self._program.outputs))
        return self._run(given.columns(), given.variables)

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
        schema = self._program.schema
        feeds: dict[str, AnyArray] = {"p": p[:, 1] if self._program.binary else p}
        schema.check_zones(variables)
        columns = schema.align(variables) if schema.names else []
        for k in self._program.used:
            name = _input_name(schema.names[k])
            feeds[name] = columns[k]
            if schema.kinds[k] == "levels":  # missing ones have the code −1, unseen ones −2
                texts = [*self._program.level_texts(k), UNSEEN, self.missing[name]]
                feeds[name] = np.array(texts, dtype=object)[columns[k]]
        answer = np.empty((len(p), len(self._program.outputs)))
        for begin in range(0, len(p), BLOCK):
            part = slice(begin, begin + BLOCK)
            block = {name: values[part] for name, values in feeds.items()}
            (answer[part],) = self._session.run(None, block)
        return answer


def to_onnx(calibrator: Calibrator) -> OnnxExport:
    """Export a calibrator as ONNX; see `Calibrator.to_onnx`."""
    onnx = import_library("onnx", "exporting to ONNX")
    program = Program.of(calibrator)
    rows = RandomRows.of(program)
    graph = _Graph(onnx, program)
    model = graph.model()
    model.doc_string = " ".join(heading(program))
    onnx.checker.check_model(model)
    for key, value in (
        ("classes", [str(label) for label in program.classes]),
        ("missing levels", graph.missing),
    ):
        entry = model.metadata_props.add()
        entry.key, entry.value = f"varcal {key}", json.dumps(value)
    return OnnxExport(rows, program, model, graph.missing)


def _input_name(name: str) -> str:
    """Return the name of the input of a variable; those of score and result are taken."""
    return f"v_{name}" if name in ("p", "probabilities") else name


class _Graph:
    """Nodes and constants of a graph."""

    def __init__(self, onnx: Any, program: Program) -> None:
        self._helper, self._types = onnx.helper, onnx.TensorProto
        self._numpy = onnx.numpy_helper
        self.program = program
        self.nodes: list[Any] = []
        self.constants: dict[Any, Any] = {}
        self.inputs: dict[str, Any] = {}
        self.missing: dict[str, str] = {}

    def model(self) -> Any:
        """Build the model; its output is ``probabilities``, one column per class."""
        helper, k = self._helper, len(self.program.outputs)
        self._input("p", self._types.DOUBLE, *[k] * (not self.program.binary))
        self._scores = self._column("p") if self.program.binary else "p"
        found: dict[int, str] = {}
        for step in sorted_steps(self.program.outputs):
            found[id(step)] = self._step(step, [found[id(arg)] for arg in step.args])
        answer = self._node("Concat", *(found[id(step)] for step in self.program.outputs), axis=1)
        nothing = self._constant([[math.nan]])
        self._node("Where", self._valid(), answer, nothing, out="probabilities")
        output = helper.make_tensor_value_info("probabilities", self._types.DOUBLE, ["rows", k])
        graph = helper.make_graph(
            self.nodes,
            "calibrator",
            list(self.inputs.values()),
            [output],
            list(self.constants.values()),
        )
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", 3)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=8, producer_name="varcal")

    # Pieces.

    def _input(self, name: str, kind: int, *shape: int) -> bool:
        """Add an input, and return whether it is new."""
        new = name not in self.inputs
        self.inputs[name] = self._helper.make_tensor_value_info(name, kind, ["rows", *shape])
        return new

    def _node(self, op: str, *args: str, out: str = "", domain: str = "", **attributes: Any) -> str:
        out = out or f"t{len(self.nodes)}"
        node = self._helper.make_node(
            op, args, [out], name=out, domain=domain or None, **attributes
        )
        self.nodes.append(node)
        return out

    def _constant(self, value: Any, kind: Any = np.float64) -> str:
        array = np.ascontiguousarray(value, dtype=kind)
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self.constants:
            self.constants[key] = self._numpy.from_array(array, f"c{len(self.constants)}")
        return str(self.constants[key].name)

    def _whole(self, *values: int) -> str:
        return self._constant(values, np.int64)

    def _column(self, name: str) -> str:
        return self._node("Unsqueeze", name, self._whole(1))

    def _cast(self, name: str, kind: int) -> str:
        return self._node("Cast", name, to=kind)

    def _sum(self, name: str) -> str:
        return self._node("ReduceSum", name, self._whole(1), keepdims=1)

    def _rows(self, table: Any, position: str, kind: Any = np.float64) -> str:
        """Return the rows of a table at positions."""
        at = self._node("Squeeze", position, self._whole(1))
        return self._node("Gather", self._constant(table, kind), at, axis=0)

    def _some(self, x: str, *positions: int) -> str:
        """Return some columns."""
        return self._node("Gather", x, self._whole(*positions), axis=1)

    def _valid(self) -> str:
        """Return whether the scores of a row are probabilities."""
        one = self._constant([[1.0]])
        low = self._node("LessOrEqual", self._constant([[0.0]]), self._scores)
        inside = self._node("And", low, self._node("LessOrEqual", self._scores, one))
        # Neither holds for a missing score.
        least = self._cast(inside, self._types.INT32)
        valid = self._cast(self._node("ReduceMin", least, axes=[1], keepdims=1), self._types.BOOL)
        if self.program.binary:
            return valid
        apart = self._node("Abs", self._node("Sub", self._sum(self._scores), one))
        near = self._constant([[self.program.sum_tolerance]])
        return self._node("And", valid, self._node("LessOrEqual", apart, near))

    # Operations.

    def _step(self, step: Step, args: list[str]) -> str:
        match step.op:
            case "score":
                return self._scores if self.program.binary else self._some("p", step.data)
            case "number":
                name = _input_name(self.program.schema.names[step.data])
                self._input(name, self._types.DOUBLE)
                return self._column(name)
            case "code":
                return self._code(step.data)
            case "constant" if isinstance(step.data, int):
                return self._constant([[step.data]], np.int64)
            case "constant":
                return self._constant(np.reshape(step.data, (1, -1)))
            case "among":
                size = len(self.program.schema.levels[step.args[0].data]) + 2
                return self._rows(np.isin(np.arange(size), step.data)[:, None], args[0], np.bool_)
            case "find":
                return self._find(args[0], step.data)
            case "take":
                return self._rows(step.data.reshape(len(step.data), -1), args[0])
            case "curve":
                return self._curve(args[0], step.data)
            case "choose":
                return self._choose(step.width or 1, args[0], args[1:])
            case "trees":
                return self._trees(args, step.data)
            case "join":
                return self._node("Concat", *args, axis=1)
            case "part" | "item" | "arrange":
                columns = range(*step.data) if step.op == "part" else np.atleast_1d(step.data)
                return self._some(args[0], *columns)
            case "dot":
                return self._node("MatMul", args[0], self._constant(step.data))
            case "total":
                return self._sum(args[0])
            case "largest":
                return self._node("ReduceMax", args[0], axes=[1], keepdims=1)
            case "top":
                return self._node("ArgMax", args[0], axis=1, keepdims=1)
            case "clock":
                raise InputError(
                    f"ONNX cannot compute what clocks show in the time zone {step.data!r}",
                    "convert dates to UTC or to a fixed offset before fit, or use to_python or "
                    "to_sql",
                )
        return self._node(_NODES[step.op], *args)

    def _code(self, k: int) -> str:
        name, texts = _input_name(self.program.schema.names[k]), self.program.level_texts(k)
        missing = "" if "" not in texts else "<missing>"
        while missing in texts:
            missing += "_"
        self.missing[name] = missing
        if self._input(name, self._types.STRING):
            self._node(
                "LabelEncoder",
                name,
                out=f"code {k}",
                domain="ai.onnx.ml",
                keys_strings=[*texts, missing],
                values_int64s=[*range(len(texts)), len(texts) + 1],
                default_int64=len(texts),
            )
        return self._column(f"code {k}")

    def _find(self, x: str, cuts: Floats) -> str:
        below = self._node("Greater", x, self._constant(cuts[None, :]))
        return self._cast(self._sum(self._cast(below, self._types.INT32)), self._types.INT64)

    def _curve(self, x: str, shape: Curve) -> str:
        low, high = (self._constant([[shape.knots[k]]]) for k in (0, -1))
        inside = self._node("Min", self._node("Max", x, low), high)
        # How many knots after the first are at or below it: the slope after the last one is 0.
        at = self._find(inside, np.nextafter(shape.knots[1:], -np.inf))
        knot, height, slope = (
            self._rows(table.reshape(len(shape.knots), -1), at)
            for table in (shape.knots, shape.heights, shape.slopes)
        )
        return self._node("Add", height, self._node("Mul", slope, self._node("Sub", inside, knot)))

    def _choose(self, width: int, position: str, options: list[str]) -> str:
        if width > 1:
            first = self._node("Mul", position, self._whole(width))
            position = self._node("Add", first, self._constant([range(width)], np.int64))
        return self._node(
            "GatherElements", self._node("Concat", *options, axis=1), position, axis=1
        )

    def _trees(self, numbers: list[str], forest: Forest) -> str:
        """Walk all trees at once: one column per tree, one round per level."""
        columns = self._node(
            "Concat", *(self._cast(each, self._types.DOUBLE) for each in numbers), axis=1
        )
        n_trees, inner = forest.cut.shape
        variable = self._constant(forest.variable.ravel(), np.int64)
        cut, leaf = self._constant(forest.cut.ravel()), self._constant(forest.value.ravel())
        first = np.arange(n_trees)[None, :]
        begin = self._constant(first * inner, np.int64)
        # A column of zeros for every row.
        zero = self._node("Mul", self._cast(numbers[0], self._types.INT64), self._whole(0))
        node = self._node("Add", zero, self._constant(np.zeros_like(first), np.int64))
        for _ in range(forest.depth):
            at = self._node("Add", node, begin)
            read = self._node("GatherElements", columns, self._node("Gather", variable, at), axis=1)
            right = self._node("Greater", read, self._node("Gather", cut, at))
            child = self._node("Add", self._cast(right, self._types.INT64), self._whole(1))
            node = self._node("Add", self._node("Add", node, node), child)
        leaves = self._constant(first * (inner + 1) - inner, np.int64)
        return self._sum(self._node("Gather", leaf, self._node("Add", node, leaves)))
