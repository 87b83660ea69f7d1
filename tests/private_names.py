"""Private names of msdump that tests use: `python -m tests.private_names` lists them by place, and counts them.

A test that knows a private name stops a refactoring. Counted are attributes `x._name`, imports and patches of names
that msdump defines, but for a test's own ones.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_PRIVATE = re.compile(r"_[a-z]\w*")
# Names with an underscore that others call: notebooks, PyTorch, and scripts for MindSpore.
_OF_OTHERS = frozenset(
    [
        "_repr_html_",
        "_boxed_call",
        "_schema",
        "_base",
        "_c_expression",
        "_tensordump_set_step",
        "_tensordump_process_file",
        "_get_parallel_mode",
        "_get_gradients_mean",
        "_get_device_num",
        "_calculate_gain",
        "_calculate_correct_fan",
        "_calculate_fan_in_and_fan_out",
        "_refs",
    ]
)
_OTHER_LIBRARIES = re.compile(r"(torch|aten|np|numpy|os|sys|compiled_autograd)\b")


def _defined(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def _own(tree: ast.Module) -> set[str]:
    """Names that a test file gives to its functions, classes and their attributes."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and _is_self(node.value):
            names.add(node.attr)
    return names


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


def _used(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            if not _is_self(node.value) and not _OTHER_LIBRARIES.match(ast.unparse(node.value)):
                yield node.lineno, node.attr
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("msdump"):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and len(node.args) > 1:
            name = node.args[1]
            if node.func.attr in ("setattr", "delattr") and isinstance(name, ast.Constant):
                yield node.lineno, str(name.value)


def private_uses() -> list[tuple[str, int, str]]:
    """(file of tests, line, name) of each use."""
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in (ROOT / "msdump").rglob("*.py")}
    defined = {name for tree in trees.values() for name in _defined(tree) if _PRIVATE.fullmatch(name)} - _OF_OTHERS
    uses = []
    # Programs as users write them name what is PyTorch's.
    programs = ROOT / "tests/answers/programs"
    for path in sorted(set((ROOT / "tests").rglob("*.py")) - set(programs.rglob("*.py"))):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        counted = defined - _own(tree)
        uses += [(str(path.relative_to(ROOT)), line, name) for line, name in _used(tree) if name in counted]
    return uses


def main() -> int:
    """Print each use, and how many there are."""
    uses = private_uses()
    for file, line, name in uses:
        print(f"{file}:{line}: {name}")
    print(f"{len(uses)} uses of private names")
    return 0


if __name__ == "__main__":
    sys.exit(main())
