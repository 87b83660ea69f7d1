"""Model: trains, evaluates and asks a network, batch by batch."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

from msdump.frontends.mindspore.common.tensor import Tensor
from msdump.frontends.mindspore.names import publish
from msdump.frontends.mindspore.nn.cell import Cell
from msdump.frontends.mindspore.nn.optim.optimizer import Optimizer
from msdump.frontends.mindspore.nn.wrap.cell_wrapper import WithEvalCell
from msdump.frontends.mindspore.train.amp import build_train_network
from msdump.frontends.mindspore.train.callback import CallbackList, RunContext, RunParameters
from msdump.frontends.mindspore.train.metrics import Loss, Metric, get_metric_fn


class Model:
    """A network with what is needed to train and evaluate it.

    The training network is TrainOneStepCell(WithLossCell(network, loss_fn), optimizer); the evaluation network is
    WithEvalCell(network, loss_fn) unless `eval_network` is given.
    """

    def __init__(
        self,
        network: Cell,
        loss_fn: Any = None,
        optimizer: Optimizer | None = None,
        metrics: Any = None,
        eval_network: Cell | None = None,
        eval_indexes: list[int] | None = None,
        amp_level: str = "O0",
        boost_level: str = "O0",
        **kwargs: Any,
    ) -> None:
        """Raises: TypeError for anything but a Cell, or unknown arguments."""
        if not isinstance(network, Cell):
            raise TypeError(f"For 'Model', the argument 'network' must be a Cell, but got {type(network)}.")
        unknown = sorted(set(kwargs) - {"loss_scale_manager", "keep_batchnorm_fp32"})
        if unknown:
            raise ValueError(f"Unsupported arg '{unknown[0]}'")
        self._network, self._loss_fn, self._optimizer = network, loss_fn, optimizer
        self._metrics = _metrics_by_name(metrics)
        self._eval_indexes = eval_indexes
        self._amp_level = amp_level
        self._boost_level = boost_level
        self._train_network = self._make_train_network(kwargs)
        self._eval_network = eval_network or self._make_eval_network()

    def _make_train_network(self, options: dict[str, Any]) -> Cell:
        if self._optimizer is None:
            return self._network
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
        self,
        epoch: int,
        train_dataset: Any,
        callbacks: Any = None,
        dataset_sink_mode: bool = False,
        sink_size: int = -1,
        initial_epoch: int = 0,
    ) -> None:
        """Train for `epoch` rounds of the dataset.

        Edges:   sink mode runs the same steps one by one; a callback's request_stop ends after its step.
        Raises:  ValueError for an epoch that is no positive int.
        """
        if isinstance(epoch, bool) or not isinstance(epoch, int) or epoch < 1:
            raise ValueError(f"For 'Model.train', the argument 'epoch' must be int and > 0, but got {epoch!r}.")
        self._train_network.set_train()
        args = self._arguments(train_dataset, "train")
        args.update(epoch_num=epoch - initial_epoch, train_network=self._train_network, network=self._train_network)
        watchers, context = CallbackList(callbacks), RunContext(args)
        with ExitStack() as stack:
            for callback in watchers.callbacks:
                stack.enter_context(callback)
            watchers.call("on_train_begin", context)
            for number in range(initial_epoch, epoch):
                args.cur_epoch_num = number + 1
                self._train_epoch(train_dataset, args, watchers, context)
                if context.get_stop_requested():
                    break
            watchers.call("on_train_end", context)

    def _train_epoch(self, dataset: Any, args: RunParameters, watchers: CallbackList, context: RunContext) -> None:
        watchers.call("on_train_epoch_begin", context)
        for batch in _batches(dataset):
            args.train_dataset_element = batch
            args.cur_step_num += 1
            watchers.call("on_train_step_begin", context)
            args.net_outputs = self._train_network(*batch)
            watchers.call("on_train_step_end", context)
            if context.get_stop_requested():
                break
        watchers.call("on_train_epoch_end", context)

    def _arguments(self, dataset: Any, mode: str) -> RunParameters:
        return RunParameters(
            cur_step_num=0,
            cur_epoch_num=0,
            batch_num=dataset.get_dataset_size(),
            mode=mode,
            net_outputs=None,
            loss_fn=self._loss_fn,
            optimizer=self._optimizer,
            eval_network=self._eval_network,
            eval_results={},
            parallel_mode="stand_alone",
            device_number=1,
            train_dataset=dataset if mode == "train" else None,
            valid_dataset=dataset if mode == "eval" else None,
            list_callback=None,
            dataset_sink_mode=False,
            metrics={},
        )

    # -- evaluation ---------------------------------------------------------------------------------

    def eval(self, valid_dataset: Any, callbacks: Any = None, dataset_sink_mode: bool = False) -> dict[str, Any]:
        """Metrics over the dataset, by name.   Raises: ValueError without metrics, loss or evaluation network."""
        if not self._metrics:
            raise ValueError(
                "For Model.eval, the model argument 'metrics' can not be None or empty, you should set it."
            )
        if self._eval_network is None:
            raise ValueError("Model.eval: expected a loss_fn or an eval_network, got neither. Give one to Model.")
        for metric in self._metrics.values():
            metric.clear()
        network = self._eval_network
        was_training = network.training
        network.set_train(False)
        args = self._arguments(valid_dataset, "eval")
        args.update(network=network, cur_epoch_num=1)
        watchers, context = CallbackList(callbacks), RunContext(args)
        watchers.call("on_eval_begin", context)
        watchers.call("on_eval_epoch_begin", context)
        for batch in _batches(valid_dataset):
            args.cur_step_num += 1
            watchers.call("on_eval_step_begin", context)
            args.net_outputs = network(*batch)
            self._update_metrics(args.net_outputs)
            watchers.call("on_eval_step_end", context)
            if context.get_stop_requested():
                break
        watchers.call("on_eval_epoch_end", context)
        results = {name: metric.eval() for name, metric in self._metrics.items()}
        args.update(metrics=results, eval_results=results)
        watchers.call("on_eval_end", context)
        network.set_train(was_training)
        return results

    def _update_metrics(self, outputs: Any) -> None:
        """Source: WithEvalCell gives (loss, outputs, label); `Loss` takes the first, other metrics the rest."""
        values = tuple(outputs) if isinstance(outputs, tuple | list) else (outputs,)
        loss_at, output_at, label_at = self._eval_indexes or (0, 1, 2)
        for metric in self._metrics.values():
            if metric.indexes is not None:
                metric.update(*values)
            elif isinstance(metric, Loss):
                metric.update(values[loss_at])
            else:
                metric.update(values[output_at], values[label_at])

    def fit(
        self,
        epoch: int,
        train_dataset: Any,
        valid_dataset: Any = None,
        valid_frequency: int = 1,
        callbacks: Any = None,
        dataset_sink_mode: bool = False,
        **options: Any,
    ) -> None:
        """Train, and evaluate after every `valid_frequency` epochs."""
        for number in range(epoch):
            self.train(number + 1, train_dataset, callbacks, initial_epoch=number)
            if valid_dataset is not None and (number + 1) % valid_frequency == 0:
                print(f"Eval result: epoch {number + 1}, metrics: {self.eval(valid_dataset)}", flush=True)

    # -- asking -------------------------------------------------------------------------------------

    def predict(self, *predict_data: Tensor) -> Any:
        """What the network gives for these tensors."""
        self._network.set_train(False)
        return self._network(*predict_data)

    def build(self, train_dataset: Any = None, valid_dataset: Any = None, sink_size: int = -1, epoch: int = 1) -> None:
        """Compile for the first batch of a dataset without running."""
        if train_dataset is not None:
            self._train_network.set_train()
            self._train_network.compile(*next(iter(_batches(train_dataset))))
        if valid_dataset is not None and self._eval_network is not None:
            self._eval_network.set_train(False)
            self._eval_network.compile(*next(iter(_batches(valid_dataset))))


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
