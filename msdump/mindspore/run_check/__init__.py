"""`mindspore.run_check`: does the installation compute?"""

from __future__ import annotations

import numpy as np

from msdump._version import __version__
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.names import publish


def run_check() -> None:
    """Multiply two tensors and print what came of it."""
    product = Tensor(np.ones((2, 2), np.float32)) * Tensor(np.full((2, 2), 2, np.float32))
    is_right = bool((product.asnumpy() == 2).all())
    print(f"msdump version: {__version__}")
    print("The result of multiplication calculation is", "correct." if is_right else "wrong.")


publish(__name__)
