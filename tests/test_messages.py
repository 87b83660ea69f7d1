"""What msdump says to a user names no module of its own code."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.package import PACKAGE

INTERNAL = re.compile(
    r"\bmsdump[./](?:acl_engine|analysis|config|dump|engine|formats|frontends|graph|graph_files|kernels|session)\b"
)
# What a user imports: docs name them as well.
PUBLIC = re.compile(r"\bmsdump\.(?:analysis|acl|torchair|testing|formats)\b")


def sentences(tree: ast.AST) -> Iterator[str]:
    """Texts of several words that are no docstring."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, documented) and node.body and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings
        if is_text and " " in node.value.strip():
            yield node.value


def test_no_message_names_a_module_of_msdumps_own() -> None:
    found = {
        f"{path.relative_to(PACKAGE.parent)}: {text}"
        for path in PACKAGE.rglob("*.py")
        if "_proto" not in path.parts
        for text in sentences(ast.parse(path.read_text(encoding="utf-8")))
        if INTERNAL.search(PUBLIC.sub("", text))
    }
    assert not found
