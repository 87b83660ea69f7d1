"""Calls of pyACL that must succeed; it needs no model, so neither onnx nor onnxruntime."""

from __future__ import annotations

from typing import Any

from msdump.frontends import acl


def ok(found: Any) -> Any:
    """The value of a call that must succeed."""
    *values, code = found if isinstance(found, tuple) else (found,)
    assert code == 0, acl.get_recent_err_msg()
    return values[0] if values else None
