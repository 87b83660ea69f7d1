"""Dump and load in a few lines, with errors in place of codes.

with msdump.acl.dump("acl.json") as d:
    model = msdump.acl.load("resnet50.onnx")
    outputs = model(images)
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msdump.engine.opening import DumpBlock, dump_models
from msdump.errors import ExecutionError
from msdump.frontends.acl.models import loader
from msdump.frontends.acl.process import process
from msdump.tensors.arrays import Array

if TYPE_CHECKING:
    from msdump.frontends.onnx import DeclaredTensor, OnnxModel

log = logging.getLogger("msdump")


class Model:
    """A loaded model.

    name             of its file, or the name inside of it
    inputs, outputs  as it declares them
    """

    def __init__(self, onnx_model: OnnxModel) -> None:
        self._onnx = onnx_model
        self.name = onnx_model.file_name or onnx_model.model_name
        self.inputs: tuple[DeclaredTensor, ...] = onnx_model.inputs
        self.outputs: tuple[DeclaredTensor, ...] = onnx_model.outputs

    def __call__(self, *inputs: object, **named: object) -> dict[str, Array]:
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
        results = self._onnx.run({**given, **named})
        return {spec.name: results[spec.name] for spec in self.outputs}


def dump(config: str | os.PathLike[str] | Mapping[str, Any]) -> DumpBlock:
    """Dump what an acl.json asks for: `with msdump.acl.dump("acl.json") as d: ...`.

    config   path of the file, or a mapping that holds what such a file would
    Raises:  AclConfigError.
    """
    return dump_models(config)


def load(path: str | os.PathLike[str] | bytes) -> Model:
    """Load a `.onnx` file, or its bytes, with the dump that is in force.

    Raises: FormatError for what is not ONNX, GraphError for operators that are not known.
    """
    process.dump.obey_environment()
    dumps, device_id = process.dump.in_force(), process.device_id
    model = loader()(path, has_arena=any(dump.wants_arena(device_id) for dump in dumps))
    process.watch(model, dumps, next(process.model_ids))
    return Model(model)
