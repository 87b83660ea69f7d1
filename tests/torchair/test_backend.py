"""What the entry of TorchAir says of the PyTorch that it finds."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from msdump.torchair.backend import TESTED, warn_of_untested_torch


@pytest.mark.parametrize(
    ("version", "is_said"), [("2.5.1+cpu", True), ("2.8.0", True), ("2.9.0a0+git", False), ("3.0", False)]
)
def test_an_untested_torch_is_named_at_the_import(
    version: str, is_said: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "torch", SimpleNamespace(__version__=version))
        warn_of_untested_torch()
    assert (f"expected torch 2.9 or newer, with which it is tested, got {version}. " in caplog.text) == is_said
    assert bool(caplog.records) == is_said and TESTED == (2, 9)


def test_no_torch_is_no_warning(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    with monkeypatch.context() as patch:
        patch.delitem(sys.modules, "torch", raising=False)
        patch.setattr("msdump.torchair.backend.version", lambda name: "2.13.0")
        warn_of_untested_torch()
    assert not caplog.records
