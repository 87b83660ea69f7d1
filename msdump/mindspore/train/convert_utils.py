"""Conversion of networks and models for the optimizer thor, which runs on an Ascend device alone."""

from __future__ import annotations

from typing import Any, NoReturn, final

from msdump.mindspore.names import publish


def _refuse(name: str) -> NoReturn:
    raise RuntimeError(f"{name}: expected an Ascend device, got none. Train with Momentum or Adam instead of thor.")


@final
class ConvertNetUtils:
    """Raises: RuntimeError at each use."""

    def convert_to_thor_net(self, net: Any) -> NoReturn:
        """Raises: RuntimeError."""
        _refuse("ConvertNetUtils.convert_to_thor_net")


@final
class ConvertModelUtils:
    """Raises: RuntimeError at each use."""

    @staticmethod
    def convert_to_thor_model(*args: Any, **kwargs: Any) -> NoReturn:
        """Raises: RuntimeError."""
        _refuse("ConvertModelUtils.convert_to_thor_model")


publish(__name__)
