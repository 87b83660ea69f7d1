"""Model: trains, evaluates and asks a network, batch by batch."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, final

from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.context import get_auto_parallel_context, get_context
from msdump.mindspore.names import explain_missing, publish
from msdump.mindspore.nn.cell import Cell
from msdump.mindspore.nn.optim.optimizer import Optimizer
from msdump.mindspore.nn.wrap.cell_wrapper import WithEvalCell, WithLossCell, give_parameters
from msdump.mindspore.train.amp import build_train_network
from msdump.mindspore.train.callback.base import Callback, CallbackList, RunContext, RunParameters, loss_of
from msdump.mindspore.train.callback.monitors import TimeMonitor
from msdump.mindspore.train.metrics import Loss, Metric, get_metric_fn


class Model:
    """A network with what is needed to train and evaluate it.

    The training network is TrainOneStepCell(WithLossCell(network, loss_fn), optimizer), without an optimizer
    WithLossCell(network, loss_fn), which trains nothing; the evaluation network is
    WithEvalCell(network, loss_fn) unless `eval_network` is given.
    """

    def __init__(
        self, network: Cell, loss_fn: Any = None, optimizer: Optimizer | None = None, metrics: Any = None,
        eval_network: Cell | None = None, eval_indexes: list[int] | None = None, amp_level: str = "O0",
        boost_level: str = "O0", **kwargs: Any,
    ) -> None:  # fmt: skip
        """Raises: TypeError for anything but a Cell, or unknown arguments."""
        if not isinstance(network, Cell):
            raise TypeError(f"For 'Model', the argument 'network' must be a Cell, but got {type(network)}.")
        unknown = sorted(set(kwargs) - {"loss_scale_manager", "keep_batchnorm_fp32"})
        if unknown:
            raise ValueError(f"Unsupported arg '{unknown[0]}'")
        self._network, self._loss_fn, self._optimizer = network, loss_fn, optimizer
        self._metrics = _metrics_by_name(metrics)
        self._eval_indexes = _checked_indexes(eval_indexes, eval_network)
        self._amp_level = amp_level
        self._loss_scale_manager = kwargs.get("loss_scale_manager")
        self._boost_level = boost_level
        self._train_network = self._make_train_network(kwargs)
        self._eval_network = eval_network or self._make_eval_network()

    def _make_train_network(self, options: dict[str, Any]) -> Cell:
        if self._optimizer is None:
            return self._network if self._loss_fn is None else WithLossCell(self._network, self._loss_fn)
        return build_train_network(
            self._network, self._optimizer, self._loss_fn, self._amp_level, self._boost_level, **options
        )

    def _make_eval_network(self) -> Cell | None:
        if self._loss_fn is None:
            return None
        return WithEvalCell(self._network, self._loss_fn, self._amp_level in ("O2", "O3", "auto"))

    @property
    def train_network(self) -> Cell:
        return self._train_network

    @property
    def eval_network(self) -> Cell | None:
        return self._eval_network

    @property
    def predict_network(self) -> Cell:
        return self._network

    # -- training -----------------------------------------------------------------------------------

    def train(
        self, epoch: int, train_dataset: Any, callbacks: Any = None, dataset_sink_mode: bool = False,
        sink_size: int = -1, initial_epoch: int = 0,
    ) -> None:  # fmt: skip
        """Train for `epoch` rounds of the dataset.

        Edges:   sink mode runs the same steps one by one; off the CPU `sink_size` of them are an epoch. A callback's
                 request_stop ends after its step.
        Raises:  ValueError for an epoch that is no positive int, and for a dataset without rows.
        """
        plan = _Epochs("Model.train", epoch, initial_epoch, train_dataset, dataset_sink_mode, sink_size)
        self._run_epochs(plan, callbacks, None)

    def fit(
        self, epoch: int, train_dataset: Any, valid_dataset: Any = None, valid_frequency: int | Sequence[int] = 1,
        callbacks: Any = None, dataset_sink_mode: bool = False, valid_dataset_sink_mode: bool = False,
        sink_size: int = -1, initial_epoch: int = 0,
    ) -> None:  # fmt: skip
        """Train, and evaluate after every `valid_frequency` epochs, or after the epochs of that list.

        Edges:   callbacks find the results in `eval_results` and `metrics` at the end of that epoch of training.
        Raises:  as `train`; TypeError for another valid_frequency; ValueError without metrics.
        """
        plan = _Epochs("Model.fit", epoch, initial_epoch, train_dataset, dataset_sink_mode, sink_size)
        if isinstance(valid_frequency, bool) or not isinstance(valid_frequency, int | list):
            raise TypeError(
                "For 'Model.fit', the type of 'valid_frequency' must be a list or an integer, but got type "
                f"{type(valid_frequency)}."
            )
        if valid_dataset is not None:
            self._check_metrics("Model.fit")
        is_due = _every(valid_frequency)

        def evaluate(args: RunParameters, watchers: CallbackList) -> None:
            if valid_dataset is not None and is_due(args.cur_epoch_num):
                self._eval_in_fit(valid_dataset, args, watchers)

        self._run_epochs(plan, callbacks, evaluate)

    def _run_epochs(self, plan: _Epochs, callbacks: Any, evaluate: Any) -> None:
        self._train_network.set_train()
        if get_auto_parallel_context("parameter_broadcast"):
            give_parameters(self._train_network)
        args = self._arguments(plan.dataset, "train")
        args.update(
            epoch_num=plan.last - plan.first,
            batch_num=plan.steps,
            train_network=self._train_network,
            network=self._network,
            train_dataset_element=None,
        )
        watchers, context = CallbackList(callbacks), RunContext(args)
        args.list_callback = watchers.callbacks
        with ExitStack() as stack:
            for callback in watchers.callbacks:
                stack.enter_context(callback)
            watchers.call("on_train_begin", context)
            for number in range(plan.first, plan.last):
                args.cur_epoch_num = number + 1
                watchers.call("on_train_epoch_begin", context)
                self._train_epoch(plan.batches(), args, watchers, context)
                if evaluate is not None:
                    evaluate(args, watchers)
                watchers.call("on_train_epoch_end", context)
                args.update(metrics={}, eval_results={})
                if context.get_stop_requested():
                    break
            watchers.call("on_train_end", context)

    def _train_epoch(self, batches: Any, args: RunParameters, watchers: CallbackList, context: RunContext) -> None:
        for batch in batches:
            if self._loss_fn is not None and len(batch) != 2:
                raise ValueError(
                    "When 'loss_fn' is not None, 'train_dataset' should return two elements, but got "
                    f"{len(batch)}. Give the network its own loss, or project two columns."
                )
            args.train_dataset_element = batch
            args.cur_step_num += 1
            watchers.call("on_train_step_begin", context)
            args.net_outputs = self._train_network(*batch)
            self._adjust_scale(args.net_outputs)
            watchers.call("on_train_step_end", context)
            if context.get_stop_requested():
                break

    def _adjust_scale(self, outputs: Any) -> None:
        """Tell the loss scale manager of the script whether the step overflowed."""
        manager = self._loss_scale_manager
        if manager is None or not getattr(manager, "get_drop_overflow_update", bool)():
            return
        if isinstance(outputs, tuple) and len(outputs) > 1 and isinstance(outputs[1], Tensor):
            manager.update_loss_scale(bool(outputs[1].asnumpy().all()))

    def _arguments(self, dataset: Any, mode: str) -> RunParameters:
        return RunParameters(
            cur_step_num=0,
            cur_epoch_num=0,
            batch_num=dataset.get_dataset_size(),
            mode=mode,
            net_outputs=None,
            loss_fn=self._loss_fn,
            optimizer=self._optimizer,
            loss_scale_mananger=self._loss_scale_manager,
            eval_network=self._eval_network,
            eval_results={},
            parallel_mode=get_auto_parallel_context("parallel_mode"),
            device_number=get_auto_parallel_context("device_num"),
            train_dataset=dataset if mode == "train" else None,
            valid_dataset=dataset if mode == "eval" else None,
            list_callback=None,
            dataset_sink_mode=False,
            metrics={},
        )

    # -- evaluation ---------------------------------------------------------------------------------

    def eval(self, valid_dataset: Any, callbacks: Any = None, dataset_sink_mode: bool = False) -> dict[str, Any]:
        """Metrics over the dataset, by name.   Raises: ValueError without metrics, loss or evaluation network."""
        self._check_metrics("Model.eval")
        args = self._arguments(valid_dataset, "eval")
        args.update(network=self._network, cur_epoch_num=1)
        watchers = CallbackList(callbacks)
        args.list_callback = watchers.callbacks
        with ExitStack() as stack:
            for callback in watchers.callbacks:
                stack.enter_context(callback)
            return self._evaluate(valid_dataset, args, watchers)[0]

    def _check_metrics(self, name: str) -> None:
        if not self._metrics:
            raise ValueError(f"For {name}, the model argument 'metrics' can not be None or empty, you should set it.")
        if self._eval_network is None:
            raise ValueError(f"{name}: expected a loss_fn or an eval_network, got neither. Give one to Model.")

    def _eval_in_fit(self, dataset: Any, args: RunParameters, watchers: CallbackList) -> None:
        """Evaluate between two epochs; afterwards the parameters are again those of the training.

        Source: of MindSpore's own callbacks only TimeMonitor sees this evaluation; those of the script do.
        """
        own = Callback.__module__.rpartition(".")[0]
        chosen = [
            callback
            for callback in watchers.callbacks
            if isinstance(callback, TimeMonitor) or not type(callback).__module__.startswith(own)
        ]
        kept = {name: args[name] for name in ("mode", "cur_step_num", "batch_num", "net_outputs")}
        args.update(mode="eval", cur_step_num=0, batch_num=dataset.get_dataset_size(), valid_dataset=dataset)
        results, loss = self._evaluate(dataset, args, CallbackList(chosen))
        args.update(kept)
        args.update(metrics=results, eval_results={**results, **({} if loss is None else {"eval_loss": loss})})
        self._train_network.set_train()

    def _evaluate(
        self, dataset: Any, args: RunParameters, watchers: CallbackList
    ) -> tuple[dict[str, Any], float | None]:
        """Metrics by name, and the loss of the last batch."""
        network = self._eval_network
        assert network is not None
        for metric in self._metrics.values():
            metric.clear()
        was_training = network.training
        network.set_train(False)
        context = RunContext(args)
        loss = None
        watchers.call("on_eval_begin", context)
        watchers.call("on_eval_epoch_begin", context)
        for batch in _batches(dataset):
            args.cur_step_num += 1
            args.eval_dataset_element = batch
            watchers.call("on_eval_step_begin", context)
            args.net_outputs = network(*batch)
            watchers.call("on_eval_step_end", context)
            loss = self._update_metrics(args.net_outputs)
            if context.get_stop_requested():
                break
        watchers.call("on_eval_epoch_end", context)
        results = {name: metric.eval() for name, metric in self._metrics.items()}
        args.update(metrics=results, eval_results={**results, **({} if loss is None else {"eval_loss": loss})})
        watchers.call("on_eval_end", context)
        network.set_train(was_training)
        return results, loss

    def _update_metrics(self, outputs: Any) -> float | None:
        """Source: WithEvalCell gives (loss, outputs, label); `Loss` takes the first, other metrics the rest.

        A network of the script without `eval_indexes` gives metrics all that it gives. Returns the loss.
        """
        values = tuple(outputs) if isinstance(outputs, tuple | list) else (outputs,)
        if self._eval_indexes is None:
            for metric in self._metrics.values():
                metric.update(*values)
            return None
        if len(values) < 3:
            raise ValueError(f"The length of 'outputs' must be >= 3, but got {len(values)}.")
        loss_at, output_at, label_at = self._eval_indexes
        for metric in self._metrics.values():
            if metric.indexes is not None:
                metric.update(*values)
            elif isinstance(metric, Loss):
                metric.update(values[loss_at])
            else:
                metric.update(values[output_at], values[label_at])
        return loss_of(values[loss_at])

    # -- asking -------------------------------------------------------------------------------------

    def predict(self, *predict_data: Any, backend: str | None = None, config: Any = None) -> Any:
        """What the network gives for these tensors.   Raises: ValueError for an empty tensor or another backend."""
        if backend is not None:
            raise ValueError(
                f"For Model.predict, `backend` must be None, but got {backend}. msdump has no lite backend."
            )
        if any(isinstance(item, Tensor) and item.size == 0 for item in predict_data):
            raise ValueError("The input data can not be empty.")
        self._network.set_train(False)
        return self._network(*predict_data)

    def build(
        self, train_dataset: Any = None, valid_dataset: Any = None, sink_size: int = -1, epoch: int = 1,
        sink_mode: bool = True,
    ) -> None:  # fmt: skip
        """Compile for the first batch of a dataset without running."""
        if train_dataset is not None:
            self._train_network.set_train()
            self._train_network.compile(*next(iter(_batches(train_dataset))))
        if valid_dataset is not None and self._eval_network is not None:
            self._eval_network.set_train(False)
            self._eval_network.compile(*next(iter(_batches(valid_dataset))))

    def infer_train_layout(self, train_dataset: Any, dataset_sink_mode: bool = True, sink_size: int = -1) -> Any:
        """Raises: RuntimeError: parameters are not cut over devices, so there is no layout."""
        raise RuntimeError(_NO_LAYOUT)

    def infer_predict_layout(self, *predict_data: Any, skip_backend_compile: bool = False) -> Any:
        """Raises: RuntimeError: parameters are not cut over devices, so there is no layout."""
        raise RuntimeError(_NO_LAYOUT)


_NO_LAYOUT = (
    "Model: expected semi_auto_parallel or auto_parallel mode, got one that keeps parameters whole. Every rank has all "
    "of each parameter."
)


@final
class _Epochs:
    """The epochs of a training: their numbers, and the steps of each.

    Raises: ValueError or TypeError for arguments that MindSpore refuses, too.
    """

    def __init__(self, name: str, epoch: int, first: int, dataset: Any, is_sinking: bool, sink_size: int) -> None:
        if isinstance(epoch, bool) or not isinstance(epoch, int):
            raise TypeError(
                f"For '{name}', the argument 'epoch' must be int, but got {type(epoch).__name__} {epoch!r}."
            )
        if epoch < 1:
            raise ValueError(f"For '{name}', the argument 'epoch' must be int and > 0, but got {epoch!r}.")
        if isinstance(first, bool) or not isinstance(first, int) or not 0 <= first < epoch:
            raise ValueError(
                f"For '{name}', the parameter 'epoch' must bigger than parameter 'initial_epoch' >= 0, but got the "
                f"parameter 'epoch' is {epoch}, 'initial_epoch' is {first}."
            )
        if not isinstance(is_sinking, bool):
            raise TypeError(f"For '{name}', the argument 'dataset_sink_mode' must be bool, but got {is_sinking!r}.")
        if isinstance(sink_size, bool) or not isinstance(sink_size, int) or sink_size < -1 or sink_size == 0:
            raise ValueError(f"For '{name}', The argument 'sink_size' must be -1 or positive, but got {sink_size}.")
        size = dataset.get_dataset_size()
        if size == 0:
            raise ValueError("There is no valid data in dataset, please check dataset file firstly.")
        self.dataset, self.first, self.last = dataset, first, epoch
        sinks = is_sinking and sink_size > 0 and get_context("device_target") != "CPU"
        self.steps = sink_size if sinks else size
        self._endless = self._rows() if sinks else None

    def _rows(self) -> Iterator[Any]:
        while True:
            yield from _batches(self.dataset)

    def batches(self) -> Any:
        """The batches of the next epoch."""
        return _batches(self.dataset) if self._endless is None else itertools.islice(self._endless, self.steps)


def _every(frequency: Any) -> Callable[[int], bool]:
    if isinstance(frequency, int):
        return lambda epoch: epoch % frequency == 0
    return lambda epoch: epoch in frequency


def _checked_indexes(indexes: Any, eval_network: Cell | None) -> list[int] | None:
    """Places of the loss, the output and the label.   Raises: TypeError, ValueError for anything but three ints."""
    if eval_network is None:
        return [0, 1, 2]
    if indexes is None:
        return None
    if not isinstance(indexes, list) or not all(isinstance(index, int) for index in indexes):
        raise TypeError(f"For 'Model', the argument 'eval_indexes' must be a list of int, but got {indexes!r}.")
    if len(indexes) != 3:
        raise ValueError(f"For 'Model', the argument 'eval_indexes' must have 3 elements, but got {len(indexes)}.")
    return indexes


def _batches(dataset: Any) -> Any:
    """One round of a dataset, as tuples of tensors."""
    return dataset.create_tuple_iterator(num_epochs=1)


def _metrics_by_name(metrics: Any) -> dict[str, Metric]:
    """Metrics by name, of a dict of metrics, a set or list of names, or None.   Raises: TypeError for the rest."""
    if metrics is None:
        return {}
    if isinstance(metrics, Mapping):
        for name, metric in metrics.items():
            if not isinstance(name, str) or not isinstance(metric, Metric):
                raise TypeError(f"metrics[{name!r}]: expected a Metric, got {type(metric).__name__}.")
        return dict(metrics)
    if isinstance(metrics, set | list | tuple):
        return {name: get_metric_fn(name) for name in metrics}
    raise TypeError(f"For 'Model', the argument 'metrics' must be None, dict or set, but got {metrics}.")


publish(__name__)

__getattr__ = explain_missing(__name__)
