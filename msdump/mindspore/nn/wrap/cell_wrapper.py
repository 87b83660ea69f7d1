"""Cells around a network: with loss, for training, for evaluation, over several devices, or part by part."""

from __future__ import annotations

from typing import Any, final

from msdump.mindspore.common.parameter import Parameter, ParameterTuple
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.communication import GlobalComm, get_group_size
from msdump.mindspore.context import ParallelMode, get_auto_parallel_context
from msdump.mindspore.differentiate import differentiate
from msdump.mindspore.names import explain_missing, publish
from msdump.mindspore.nn.cell import Cell
from msdump.mindspore.nn.declared import Declared
from msdump.mindspore.nn.optim.optimizer import Optimizer
from msdump.mindspore.ops import function as F
from msdump.mindspore.ops.collectives import Broadcast, is_alone, mean_over_group
from msdump.mindspore.ops.composite import GradOperation


@final
class DistributedGradReducer(Cell):
    """Gradients of a network -> their sums over all processes, or with `mean` their means.

    mean     None: `gradients_mean` of `set_auto_parallel_context`
    degree   what the sums are divided by: the processes of the group
    """

    def __init__(
        self, parameters: Any, mean: bool | None = None, degree: int | None = None, fusion_type: int = 1,
        group: str = GlobalComm.WORLD_COMM_GROUP,
    ) -> None:  # fmt: skip
        super().__init__(auto_prefix=False)
        if degree is not None and (isinstance(degree, bool) or not isinstance(degree, int) or degree <= 0):
            raise ValueError(
                f"For 'DistributedGradReducer', the 'degree' must be large than 0 and be int, but got {degree!r}."
            )
        self.mean = get_auto_parallel_context("gradients_mean") if mean is None else mean
        self.degree = degree or (1 if is_alone() else get_group_size(group))
        self.group = group

    def construct(self, grads: Any) -> Any:
        if isinstance(grads, Tensor):
            return mean_over_group(grads, self.degree, self.mean, self.group)
        return tuple(self.construct(gradient) for gradient in grads)


def give_parameters(network: Cell, root_rank: int = 0) -> None:
    """Give all processes of the job the parameters of one."""
    give = Broadcast(root_rank)
    for parameter in network.get_parameters():
        parameter.set_data(give(Tensor(parameter.asnumpy())))


class WithLossCell(Cell):
    """Network and loss: (data, label) -> loss."""

    def __init__(self, backbone: Cell, loss_fn: Cell | Any) -> None:
        super().__init__(auto_prefix=False)
        self._backbone = backbone
        self._loss_fn = loss_fn

    @property
    def backbone_network(self) -> Cell:
        return self._backbone

    def construct(self, data: Tensor, label: Tensor) -> Any:
        out = self._backbone(data)
        return self._loss_fn(out, label)


class WithEvalCell(Cell):
    """Network and loss for evaluation: (data, label) -> (loss, outputs, label)."""

    def __init__(self, network: Cell, loss_fn: Cell | Any, add_cast_fp32: bool = False) -> None:
        super().__init__(auto_prefix=False)
        self._network = network
        self._loss_fn = loss_fn
        self.add_cast_fp32 = add_cast_fp32

    def construct(self, data: Tensor, label: Tensor) -> tuple[Any, Any, Any]:
        outputs = self._network(data)
        if self.add_cast_fp32:
            outputs = F.cast(outputs, "float32")
        loss = self._loss_fn(outputs, label)
        return loss, outputs, label


class TrainOneStepCell(Cell):
    """One training step: loss of the network on the inputs, gradients, update of the weights.

    Subclasses may write `construct` with what is set here:
    grad          `self.grad(self.network, self.weights)(*inputs, sens)` gives the gradients of the weights
    grad_reducer  adds gradients up over devices: with one device it hands them on
    sens          gradient of the loss
    """

    def __init__(self, network: Cell, optimizer: Optimizer, sens: float | Tensor | None = 1.0) -> None:
        super().__init__(auto_prefix=False)
        self.network = network
        self.network.set_grad()
        self.optimizer = optimizer
        object.__setattr__(self, "weights", optimizer.parameters)
        self.grad = GradOperation(get_by_list=True, sens_param=True)
        self.grad_no_sens = GradOperation(get_by_list=True)
        self.sens = 1.0 if sens is None else sens
        self.parallel_mode = get_auto_parallel_context("parallel_mode")
        self.reducer_flag = self.parallel_mode in (ParallelMode.DATA_PARALLEL, ParallelMode.HYBRID_PARALLEL)
        self.grad_reducer: Any = DistributedGradReducer(self.weights) if self.reducer_flag else _as_they_are

    weights: ParameterTuple

    @property
    def takes_gradients(self) -> bool:
        """Does `construct` of a subclass take gradients of what it has run already?"""
        return type(self).construct is not TrainOneStepCell.construct

    def construct(self, *inputs: Any) -> Any:
        result = differentiate(self.network, inputs, (), self.weights, self.sens)
        self.optimizer(self.grad_reducer(result.weight_gradients))
        return result.outputs


def _as_they_are(gradients: Any) -> Any:
    return gradients


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


class WithGradCell(Cell):
    """Gradients of a network's weights; with `loss_fn` those of the loss of (data, label)."""

    def __init__(self, network: Cell, loss_fn: Any = None, sens: Any = None) -> None:
        super().__init__(auto_prefix=False)
        self.network, self.loss_fn, self.sens = network, loss_fn, sens
        object.__setattr__(self, "weights", ParameterTuple(network.trainable_params()))
        self.network_with_loss = network if loss_fn is None else WithLossCell(network, loss_fn)
        self.network_with_loss.set_train()

    weights: ParameterTuple

    def construct(self, *inputs: Any) -> tuple[Tensor, ...]:
        return differentiate(self.network_with_loss, inputs, (), self.weights, self.sens).weight_gradients


class ForwardValueAndGrad(Declared, takes="network weights=None get_all=False get_by_list=False sens_param=False"):
    """A network's loss and its gradients with respect to weights, or inputs."""

    def _set_up(self, weights: Any) -> None:
        object.__setattr__(self, "weights", () if weights is None else tuple(weights))

    def construct(self, *inputs: Any) -> Any:
        args, sens = (inputs[:-1], inputs[-1]) if self.sens_param else (inputs, None)
        positions = range(len(args)) if self.get_all else () if self.get_by_list else (0,)
        result = differentiate(self.network, args, positions, self.weights if self.get_by_list else (), sens)
        of_inputs, of_weights = result.input_gradients, result.weight_gradients
        if self.get_by_list:
            return result.outputs, (of_inputs, of_weights) if self.get_all else of_weights
        return result.outputs, of_inputs if self.get_all else of_inputs[0]


class ParameterUpdate(Declared, takes="param"):
    """Writes its input to a parameter, and hands it on."""

    def _set_up(self, param: Any) -> None:
        if not isinstance(param, Parameter):
            raise TypeError(f"For 'ParameterUpdate', 'param' must be 'Parameter', but got {type(param)}.")
        self._param = param

    def construct(self, x: Tensor) -> Tensor:
        F.assign(self._param, x)
        return x


class VirtualDatasetCellTriple(Declared, takes="backbone"):
    """A network of three inputs, as it is: there is one device."""

    def construct(self, a: Any, b: Any, c: Any) -> Any:
        return self.backbone(a, b, c)


publish(__name__)

__getattr__ = explain_missing(__name__)
