"""Functions of `mindspore.ops`, from their families."""

from __future__ import annotations

from msdump.frontends.mindspore.ops import arithmetic, creation, losses, network, program, reductions, shapes
from msdump.frontends.mindspore.ops.arithmetic import *  # noqa: F403
from msdump.frontends.mindspore.ops.creation import *  # noqa: F403
from msdump.frontends.mindspore.ops.losses import *  # noqa: F403
from msdump.frontends.mindspore.ops.network import *  # noqa: F403
from msdump.frontends.mindspore.ops.program import *  # noqa: F403
from msdump.frontends.mindspore.ops.reductions import *  # noqa: F403
from msdump.frontends.mindspore.ops.shapes import *  # noqa: F403

__all__: list[str] = []
__all__ += arithmetic.__all__
__all__ += creation.__all__
__all__ += losses.__all__
__all__ += network.__all__
__all__ += program.__all__
__all__ += reductions.__all__
__all__ += shapes.__all__
