"""GE operators of complex numbers."""

from __future__ import annotations

from typing import Any

import torch

from msdump.frontends.torchair.ge.registry import kernel


@kernel("Complex")
def complex_of(real: Any, imag: Any) -> Any:
    return torch.complex(real, imag)


@kernel("Real")
def real(x: Any) -> Any:
    return torch.real(x).clone()


@kernel("Imag")
def imag(x: Any) -> Any:
    return torch.imag(x).resolve_neg().clone()


@kernel("Conj")
def conj(x: Any) -> Any:
    return torch.conj_physical(x)
