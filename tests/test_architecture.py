"""Imports point to lower layers, importing varcal stays light, and public names are documented."""

import ast
import doctest
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import varcal
from cases.tools import load_tool

SRC = Path(varcal.__file__).parent

# Lower layers first; a package may import only from layers below its own.
LAYERS = [
    {"exceptions", "_version", "_arrays", "_threads"},
    {"_options", "_text"},
    {"_edge_texts"},
    {"_files", "_input"},
    {"_sums", "datasets"},
    {"_inference", "calibrators"},
    {"_export", "_measures"},
    {"_search"},
    {"_audit", "_monitor"},
    {"_report"},
    {"cli", "integrations", "testing"},
]
# The entry points and the list of result types may load anything.
ENTRANCES = {"__init__", "__main__", "results"}
# Methods for convenience that import from a higher layer, inside a function.
LATE = {
    ("_text", "_edge_texts"),  # loads numpy
    ("_audit", "_report"),
    ("_measures", "_report"),
    ("_monitor", "_report"),
    ("_search", "_report"),
    ("calibrators", "_export"),
    ("calibrators", "_report"),
}


def package(module: str) -> str:
    return module.split(".")[1] if "." in module else "__init__"


def modules():
    found = []
    for path in sorted(SRC.rglob("*.py")):
        parts = ("varcal", *path.relative_to(SRC).with_suffix("").parts)
        found.append((path, ".".join(part for part in parts if part != "__init__")))
    return found


def imports(path):
    """Yield (imported varcal module, whether at module level)."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "varcal":
            top = node.col_offset == 0
            if node.module == "varcal":
                for alias in node.names:
                    yield f"varcal.{alias.name}", top
            else:
                yield node.module, top


def test_every_package_has_its_layer():
    assert len(LAYERS) <= 11
    assert {package(name) for _, name in modules()} == ENTRANCES.union(*LAYERS)


def test_imports_point_down():
    level = {one: k for k, layer in enumerate(LAYERS) for one in layer}
    for path, name in modules():
        if package(name) in ENTRANCES:
            continue
        for imported, top in imports(path):
            late = not top and (package(name), package(imported)) in LATE
            if package(imported) == package(name) or late:
                continue
            assert level[package(imported)] < level[package(name)], f"{name} imports {imported}"


def test_import_is_light():
    code = (
        "import sys; import numpy, narwhals; before = set(sys.modules); import varcal;"
        "print(*sorted(set(sys.modules) - before))"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    roots = {name.split(".")[0] for name in loaded.stdout.split()}
    heavy = {"pandas", "polars", "pyarrow", "sklearn", "scipy", "matplotlib", "rich", "click"}
    assert not roots & heavy
    reached = "import varcal; varcal.exceptions.InputError"
    subprocess.run([sys.executable, "-c", reached], check=True)
    own = [name for name in loaded.stdout.split() if name.startswith("varcal")]
    assert len(own) < 60
    others = roots - {"varcal"} - set(sys.stdlib_module_names)
    assert not others - {"numpy", "narwhals"}, others


class NearOutput(doctest.OutputChecker):
    """Numbers may differ by one in their last digit, as on the pages."""

    def check_output(self, want, got, optionflags):
        exact = super().check_output(want, got, optionflags)
        return exact or load_tool("doc_pages").agrees(want, got)


# What imports the libraries of others when it is loaded.
FOREIGN = ("varcal.__main__", "varcal.integrations.variable_calibration")


@pytest.mark.parametrize("name", [name for _, name in modules() if not name.startswith(FOREIGN)])
def test_doctests(name):
    runner = doctest.DocTestRunner(NearOutput())
    for case in doctest.DocTestFinder().find(import_module(name)):
        assert not runner.run(case).failed


def test_type_checkers_see_the_same_names_as_users():
    tree = ast.parse((SRC / "__init__.py").read_text(encoding="utf-8"))
    typed = {
        (node.module, alias.asname)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("varcal")
        for alias in node.names
        if node.col_offset
    }
    lazy = {(f"varcal.{module}", name) for name, module in varcal._HOME.items()}
    assert typed == lazy | {("varcal", name) for name in varcal._MODULES}


def test_unknown_names_are_refused_and_known_ones_listed():
    for module in (varcal, varcal.calibrators):
        assert dir(module) == sorted(module.__all__)
        with pytest.raises(AttributeError, match="no attribute 'vecee'"):
            module.vecee  # noqa: B018


def test_public_functions_have_a_running_example():
    for name in varcal.__all__:
        thing = getattr(varcal, name)
        if callable(thing) and not isinstance(thing, type):
            assert ">>>" in (thing.__doc__ or ""), name
        elif isinstance(thing, type):
            assert thing.__doc__, name
    for name in varcal.datasets.__all__:
        assert getattr(varcal.datasets, name).__doc__, name
