"""GraphCell: a network of a MINDIR file."""

from __future__ import annotations

from typing import Any

from msdump.mindspore.common.parameter import Parameter
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.mindir.reader import LoadedGraph
from msdump.mindspore.names import publish
from msdump.mindspore.nn.cell import Cell


class GraphCell(Cell):
    """Runs what `mindspore.load` gave.   params_init: values for weights, by name."""

    def __init__(self, graph: Any, params_init: dict[str, Tensor] | None = None, obf_random_seed: Any = None) -> None:
        super().__init__()
        if obf_random_seed is not None:
            raise NotImplementedError("GraphCell: expected obf_random_seed=None. Obfuscated models are not read.")
        if not isinstance(graph, LoadedGraph):
            raise TypeError(
                "For 'GraphCell', the argument 'graph' must be a FuncGraph loaded from MindIR, "
                f"but got type {type(graph)}."
            )
        values = {} if params_init is None else params_init
        if not isinstance(values, dict):
            raise TypeError(f"For 'GraphCell', the argument 'params_init' must be a dict, but got {type(values)}.")
        object.__setattr__(self, "graph", graph)
        weights = {node: parameter.clone() for node, parameter in graph.parameters.items()}
        object.__setattr__(self, "_weights", weights)
        by_name = {parameter.name: parameter for parameter in weights.values()}
        for name, value in values.items():
            self._initialize(by_name, name, value)
        self._params.update(by_name)

    def _initialize(self, by_name: dict[str, Parameter], name: Any, value: Any) -> None:
        if not isinstance(name, str) or not isinstance(value, Tensor):
            raise TypeError(
                "For 'GraphCell', the key of the 'params_init' must be str, and the value must be Tensor or "
                f"Parameter, but got the key type: {type(name)}, and the value type: {type(value)}"
            )
        if name not in by_name:
            raise ValueError(f"For 'GraphCell', expected names of weights ({', '.join(by_name)}), but got {name}.")
        by_name[name].set_data(value)

    def construct(self, *inputs: Tensor) -> Any:
        return self.graph.run(inputs, self._weights)


publish(__name__)
