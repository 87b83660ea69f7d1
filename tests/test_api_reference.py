"""docs/api.md is what the code says, and no public name is without words."""

from __future__ import annotations

import importlib
import inspect

import pytest

from tests import api_reference
from tests.test_public_api import PUBLIC


def test_the_page_is_made_from_the_code() -> None:
    """After a change: `python -m tests.api_reference` writes the page anew."""
    assert api_reference.page() == api_reference.PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize("module_name", PUBLIC)
def test_every_public_name_has_a_docstring_of_its_own(module_name: str) -> None:
    module = importlib.import_module(module_name)
    for name in module.__all__:
        member = getattr(module, name)
        documented = inspect.getdoc(member) or ""
        # A data class without one has its signature.
        assert not callable(member) or (documented and not documented.startswith(f"{name}(")), name


@pytest.mark.parametrize(
    ("docstring", "markdown"),
    [
        ("What it does.", "What it does."),
        ("What.   Raises: OSError.", "What.\n\n*Raises:* OSError."),
        ("What.\n\na   first\nb, c  second\n     goes on", "What.\n\n- `a`: first\n- `b`, `c`: second goes on"),
        ("What.\n\nOf two:\na   first", "What.\n\nOf two:\n\n- `a`: first"),
        ("What.\n\nEdges:  empty;\n        NaN.\nSource: a.", "What.\n\n*Edges:* empty; NaN.\n\n*Source:* a."),
    ],
)  # fmt: skip
def test_columns_and_labels_of_a_docstring(docstring: str, markdown: str) -> None:
    def documented() -> None: ...

    documented.__doc__ = docstring
    assert api_reference.described(documented) == markdown
