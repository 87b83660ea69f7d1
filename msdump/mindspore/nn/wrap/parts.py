"""Cells around a network that give gradients, write a parameter, or take a batch in parts."""

from __future__ import annotations

from typing import Any

from msdump.mindspore.common.parameter import Parameter, ParameterTuple
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.differentiate import differentiate
from msdump.mindspore.names import publish
from msdump.mindspore.nn.cell import Cell
from msdump.mindspore.nn.wrap.cell_wrapper import WithLossCell
from msdump.mindspore.ops import function as F


class WithGradCell(Cell):
    """Gradients of a network's weights; with `loss_fn` those of the loss of (data, label)."""

    def __init__(self, network: Cell, loss_fn: Any = None, sens: Any = None) -> None:
        super().__init__(auto_prefix=False)
        self.network, self.loss_fn = network, loss_fn
        object.__setattr__(self, "weights", ParameterTuple(network.trainable_params()))
        self.sens = sens
        self.network_with_loss = network if loss_fn is None else WithLossCell(network, loss_fn)
        self.network_with_loss.set_train()

    weights: ParameterTuple

    def construct(self, *inputs: Any) -> tuple[Tensor, ...]:
        return differentiate(self.network_with_loss, inputs, (), self.weights, self.sens).weight_gradients


class Vjp(Cell):
    """(result, gradients of the inputs) of a function: the last argument is the gradient of the result."""

    def __init__(self, fn: Any) -> None:
        super().__init__()
        self.fn = fn

    def construct(self, *args: Any) -> tuple[Any, Any]:
        inputs, v = args[:-1], args[-1]
        result = differentiate(self.fn, inputs, range(len(inputs)), sens=v)
        gradients = result.input_gradients
        return result.outputs, gradients[0] if len(inputs) == 1 else gradients


class Jvp(Cell):
    """(result, its change) of a function of one result: the last argument is the change of the inputs."""

    def __init__(self, fn: Any) -> None:
        super().__init__()
        self.fn = fn

    def construct(self, *args: Any) -> tuple[Any, Tensor]:
        """The change is the gradient, by a vector u, of u times the Jacobian times the change of the inputs."""
        inputs, v = args[:-1], args[-1]
        changes = v if isinstance(v, tuple | list) else (v,)
        output = self.fn(*inputs)

        def product(u: Tensor) -> Tensor:
            gradients = differentiate(self.fn, inputs, range(len(inputs)), sens=u).input_gradients
            parts = [F.sum(F.mul(gradient, change)) for gradient, change in zip(gradients, changes, strict=True)]
            return parts[0] if len(parts) == 1 else F.addn(parts)

        return output, differentiate(product, (F.ones_like(output),), (0,)).input_gradients[0]


class ParameterUpdate(Cell):
    """Writes its input to a parameter, and hands it on."""

    def __init__(self, param: Parameter) -> None:
        super().__init__(auto_prefix=False)
        if not isinstance(param, Parameter):
            raise TypeError(f"For 'ParameterUpdate', 'param' must be 'Parameter', but got {type(param)}.")
        self._param = param

    def construct(self, x: Tensor) -> Tensor:
        F.assign(self._param, x)
        return x


class VirtualDatasetCellTriple(Cell):
    """A network of three inputs, as it is: there is one device."""

    def __init__(self, backbone: Cell) -> None:
        super().__init__(auto_prefix=False)
        self._backbone = backbone

    def construct(self, a: Any, b: Any, c: Any) -> Any:
        return self._backbone(a, b, c)


class _Parts(Cell):
    """Base of cells that call their network on equal parts of the batch and add the results."""

    count_name = "micro_size"

    def __init__(self, network: Cell, count: int) -> None:
        super().__init__(auto_prefix=False)
        if not isinstance(network, Cell):
            raise TypeError(
                f"For '{self.cls_name}', the argument 'network' must cell type, but got the type : {type(network)}."
            )
        if isinstance(count, bool) or not isinstance(count, int):
            raise TypeError(
                f"For '{self.cls_name}', the argument '{self.count_name}' must be integer, "
                f"but got the type : {type(count)}."
            )
        if count <= 0:
            raise ValueError(
                f"For '{self.cls_name}', the argument '{self.count_name}' must be large than 0, but got {count}."
            )
        self.network = network
        setattr(self, self.count_name, count)
        self._count = count

    def construct(self, *inputs: Tensor) -> Any:
        total: Any = None
        for number in range(self._count):
            result = self.network(*(self._part(each, number) for each in inputs))
            total = result if total is None else F.add(total, result)
        return total

    def _part(self, each: Tensor, number: int) -> Tensor:
        if each.shape[0] % self._count:
            raise ValueError(
                f"For micro batch initialization, the 0th dimension shape of input({each.shape[0]}) must be divided "
                f"by micro size({self._count})"
            )
        size = each.shape[0] // self._count
        starts = (size * number, *(0,) * (each.ndim - 1))
        stops = (size * (number + 1), *each.shape[1:])
        return F.strided_slice(each, starts, stops, (1,) * each.ndim)


class PipelineCell(_Parts):
    """The sum of a network's results on `micro_size` parts of the batch; stages run one after another on one device."""

    def __init__(self, network: Cell, micro_size: int, stage_config: Any = None, segment_config: Any = None) -> None:
        super().__init__(network, micro_size)
        names = {name for name, _ in network.cells_and_names()}
        for what, config in (("stage_config", stage_config), ("segment_config", segment_config)):
            unknown = [name for name in config or {} if name not in names]
            if unknown:
                raise KeyError(f"For 'PipelineCell', the argument '{what}' : {unknown} is not found in 'network'.")

    def shard(self, *args: Any, **kwargs: Any) -> Any:
        """Raises: ValueError, as MindSpore."""
        raise ValueError("For 'PipelineCell', no 'shard' on 'PipelineCell' is allowed.")


class MicroBatchInterleaved(_Parts):
    """The sum of a network's results on `interleave_num` parts of the batch."""

    count_name = "interleave_num"

    def __init__(self, network: Cell, interleave_num: int = 2) -> None:
        super().__init__(network, interleave_num)


class GradAccumulationCell(_Parts):
    """The sum of a network's results on `micro_size` parts of the batch, so that their gradients add up."""


class GetNextSingleOp(Cell):
    """Raises: NotImplementedError when it is made: datasets have no queue on a device here."""

    def __init__(self, dataset_types: Any, dataset_shapes: Any, queue_name: str) -> None:
        super().__init__()
        raise NotImplementedError(
            f"nn.GetNextSingleOp: expected a dataset without a queue, got queue {queue_name!r}. "
            "Loop over the dataset, or use Model.train with dataset_sink_mode=False."
        )


publish(__name__)
