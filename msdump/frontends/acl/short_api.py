"""Dump and load in a few lines, with errors in place of codes.

with msdump.acl.dump("acl.json") as d:
    model = msdump.acl.load("resnet50.onnx")
    outputs = model(images)
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from msdump.arrays import Array
from msdump.errors import DumpError, ExecutionError
from msdump.frontends.acl.dump_in_force import DumpInForce, plan_of
from msdump.frontends.acl.models import loader
from msdump.frontends.acl.process import process

if TYPE_CHECKING:
    from msdump.frontends.onnx import OnnxModel, TensorSpec
    from msdump.report import Report

log = logging.getLogger("msdump")


class Dump:
    """A dump from the beginning of a `with` block to its end. Models that are loaded inside are dumped while it lasts.

    path   folder that the configuration names; None when it asks for nothing
    """

    def __init__(self, config: str | os.PathLike[str] | Mapping[str, Any]) -> None:
        self._plan = plan_of(config)
        self._dump: DumpInForce | None = None
        self.path: Path | None = None if self._plan is None else DumpInForce(self._plan).root

    def __enter__(self) -> Dump:
        self._dump = process.dump.enter(self._plan)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            process.dump.leave(self._dump)
        except DumpError as incomplete:
            if error is None:
                raise
            # The block's own error is what the user must see.
            log.error("%s", incomplete)

    def report(self) -> Report | None:
        """Counts up to now; None when the configuration asks for nothing."""
        return None if self._dump is None else self._dump.report()


class Model:
    """A loaded model.

    name             of its file, or the name inside of it
    inputs, outputs  as it declares them
    """

    def __init__(self, onnx_model: OnnxModel) -> None:
        self._onnx = onnx_model
        self.name = onnx_model.file_name or onnx_model.model_name
        self.inputs: tuple[TensorSpec, ...] = onnx_model.inputs
        self.outputs: tuple[TensorSpec, ...] = onnx_model.outputs

    def __call__(self, *inputs: Any, **named: Any) -> dict[str, Array]:
        """Run once.

        inputs   in the model's order, or one mapping of arrays by name
        named    inputs by name
        Returns: outputs by name, in the model's order.
        Raises:  ExecutionError for inputs that do not fit and for an operator that fails.
        """
        if len(inputs) == 1 and isinstance(inputs[0], Mapping):
            given = dict(inputs[0])
        else:
            names = [spec.name for spec in self.inputs]
            if len(inputs) > len(names):
                raise ExecutionError(
                    f"model {self.name}: expected at most {len(names)} inputs ({', '.join(names)}), got {len(inputs)}."
                )
            given = dict(zip(names, inputs, strict=False))
        twice = sorted(given.keys() & named.keys())
        if twice:
            raise ExecutionError(f"model {self.name}: input {twice[0]} is given twice. Give it once.")
        found = self._onnx.run({**given, **named})
        return {spec.name: found[spec.name] for spec in self.outputs}


def dump(config: str | os.PathLike[str] | Mapping[str, Any]) -> Dump:
    """Dump what an acl.json asks for: `with msdump.acl.dump("acl.json") as d: ...`.

    config   path of the file, or a mapping that holds what such a file would
    Raises:  AclConfigError; at the end of the block DumpError when the dump is not complete.
    """
    return Dump(config)


def load(path: str | os.PathLike[str] | bytes) -> Model:
    """Load a `.onnx` file, or its bytes, with the dump that is in force.

    Raises: FormatError for what is not ONNX, GraphError for operators that are not known.
    """
    process.dump.obey_environment()
    dumps, device_id = process.dump.in_force(), process.device_id
    model = loader()(path, has_arena=any(dump.wants_arena(device_id) for dump in dumps))
    process.watch(model, dumps, next(process.model_ids))
    return Model(model)
