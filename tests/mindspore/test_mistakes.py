"""Mistakes that scripts make, in both modes: what MindSpore raises, the essential words, and the line of the script."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import msdump.mindspore as ms
from msdump.mindspore import Parameter, Tensor, nn, ops
from msdump.mindspore import dataset as ds
from msdump.mindspore.train import Accuracy, Model

LINE = r"test_mistakes\.py:\d+"


def of(*shape: int, dtype: Any = np.float32) -> Tensor:
    return Tensor(np.ones(shape, dtype))


def whole(*shape: int) -> Tensor:
    return of(*shape, dtype=np.int32)


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.dense = nn.Dense(3, 2)

    def construct(self, x: Tensor) -> Tensor:
        return self.dense(x)


class NoSuper(nn.Cell):
    def __init__(self) -> None:
        self.bias = of(2)

    def construct(self, x: Tensor) -> Tensor:
        return x + self.bias


class NoConstruct(nn.Cell):
    pass


class Calling(nn.Cell):
    """A cell that computes `body` of its inputs."""

    def __init__(self, body: Callable[..., Any]) -> None:
        super().__init__()
        self.body = body

    def construct(self, *inputs: Any) -> Any:
        return self.body(*inputs)


def rows(*values: Any) -> Callable[[], Iterator[Any]]:
    return lambda: iter(values)


def trained(epochs: Any = 1, **changes: Any) -> Any:
    net = Net()
    options = {"loss_fn": nn.MSELoss(), "optimizer": nn.SGD(net.trainable_params(), 0.1), **changes}
    data = ds.GeneratorDataset(rows((np.ones(3, np.float32), np.ones(2, np.float32))), ["a", "b"])
    return Model(net, **options).train(epochs, data.batch(1))


def optimizer(**options: Any) -> Any:
    return nn.Adam(Net().trainable_params(), **{"learning_rate": 0.1, **options})


def element_set(index: Any, value: Any) -> None:
    of(2, 3)[index] = value


# What is wrong -> the call, what MindSpore 2.0 and 2.7 raise, words of the message.
Row = tuple[Callable[[], Any], type[Exception], str]
CALLS: dict[str, Row] = {
    "a Dense of other columns": (lambda: Net()(of(2, 5)), ValueError, "MatMul.*expected x2 with 5 rows.*got"),
    "integers into Dense": (lambda: Net()(whole(2, 3)), TypeError, "MatMul.*expected operands of one dtype"),
    "channels of Conv2d": (lambda: nn.Conv2d(3, 4, 3)(of(1, 5, 8, 8)), ValueError, "Conv2D.*expected w of shape"),
    "rank of Conv2d": (
        lambda: nn.Conv2d(3, 4, 3)(of(3, 8, 8)),
        ValueError,
        r"Conv2D.*expected x of shape \(N, C, H, W\)",
    ),
    "features of BatchNorm": (
        lambda: nn.BatchNorm2d(4)(of(1, 3, 8, 8)),
        ValueError,
        "BatchNorm.*expected a value per channel",
    ),
    "shape of LayerNorm": (lambda: nn.LayerNorm((4,))(of(2, 3)), ValueError, "LayerNorm.*expected gamma of shape"),
    "rank of MaxPool2d": (lambda: nn.MaxPool2d(2, 2)(of(3)), ValueError, "MaxPool.*expected x of shape"),
    "size of LSTM": (lambda: nn.LSTM(4, 5)(of(2, 3, 7)), ValueError, "LSTM.*expected input"),
    "floats into Embedding": (lambda: nn.Embedding(5, 3)(of(2)), TypeError, "Gather.*expected indices of dtype"),
    "a number into Flatten": (lambda: nn.Flatten()(3), TypeError, "Flatten.*expected arguments that it takes, got .*3"),
    "None into a layer": (lambda: nn.ReLU()(None), TypeError, "expected a Tensor or a number, got NoneType"),
    "an array into an operator": (lambda: ops.ReLU()(np.ones(2)), TypeError, "ReLU: expected a Tensor, got ndarray"),
    "a list into an operator": (lambda: ops.ReLU()([1.0]), TypeError, "ReLU: expected a Tensor, got list"),
    "too few operands": (lambda: ops.Add()(of(2)), TypeError, "Add.*missing 1 required"),
    "too many operands": (lambda: ops.Add()(of(2), of(2), of(2)), TypeError, "Add.*takes 2 positional"),
    "shapes of MatMul": (lambda: ops.MatMul()(of(2, 3), of(2, 3)), ValueError, "MatMul.*expected x2 with 3 rows"),
    "shapes that do not broadcast": (lambda: of(2, 3) + of(4, 5), ValueError, "Add.*expected shapes that broadcast"),
    "a list of another length": (lambda: of(2, 3) + [1, 2], ValueError, "Add.*expected shapes that broadcast"),
    "elements of reshape": (lambda: of(2, 3).reshape(4, 4), ValueError, "Reshape.*expected a shape for the 6 elements"),
    "text as a shape": (
        lambda: ops.reshape(of(2, 3), "a"),
        TypeError,
        "expected arguments that it takes.*invalid literal",
    ),
    "axes of transpose": (lambda: ops.transpose(of(2, 3), (0, 1, 2)), ValueError, "Transpose.*expected perm"),
    "shapes of concat": (lambda: ops.concat((of(2, 3), of(4, 5))), ValueError, "Concat.*expected shapes that agree"),
    "dtypes of concat": (
        lambda: ops.concat((of(2, 3), whole(2, 3))),
        TypeError,
        "Concat: expected tensors of one dtype",
    ),
    "nothing to concat": (lambda: ops.concat(()), ValueError, "Concat: expected at least one tensor"),
    "a tensor to concat": (lambda: ops.concat(of(2, 3)), TypeError, "Concat: expected a list or tuple"),
    "axis of a sum": (lambda: of(2, 3).sum(axis=7), ValueError, "ReduceSum.*expected axis in"),
    "axis as text": (lambda: ops.mean(of(2, 3), "a"), TypeError, "expected arguments that it takes"),
    "axis of Softmax": (lambda: nn.Softmax(axis=5)(of(2, 3)), ValueError, "Softmax.*expected axis in"),
    "axis of split": (lambda: ops.split(of(2, 3), 1, 7), ValueError, "split.*expected arguments that it takes"),
    "floats into gather": (lambda: ops.gather(of(2, 3), of(2), 0), TypeError, "Gather.*expected indices of dtype"),
    "k of topk": (lambda: ops.topk(of(2, 3), 9), ValueError, r"TopK: expected k in \(0, 3\], got 9"),
    "clip without bounds": (lambda: ops.clip_by_value(of(2, 3)), ValueError, "clip_by_value: expected"),
    "a mask of floats": (
        lambda: ops.masked_fill(of(2, 3), of(2, 3), 0.0),
        TypeError,
        "MaskedFill: expected a mask of dtype bool",
    ),
    "an unknown dtype": (lambda: ops.cast(of(2, 3), "float31"), TypeError, 'Did you mean "float32"'),
    "a step of zero": (lambda: ops.arange(0, 5, 0), ValueError, "arange.*expected arguments that it takes"),
    "ones like None": (lambda: ops.ones_like(None), TypeError, "ones_like.*got .None"),
    "an index out of range": (lambda: of(2, 3)[5], IndexError, "index.*out of bounds"),
    "too many indices": (lambda: of(2, 3)[0, 0, 0], IndexError, "index"),
    "assignment of another shape": (
        lambda: element_set(0, of(5)),
        ValueError,
        "index.*expected arguments that it takes",
    ),
    "assignment out of range": (lambda: element_set(7, 1), IndexError, "index.*out of bounds"),
    "item of many": (lambda: of(2, 3).item(), ValueError, "Tensor.item at"),
    "float of many": (lambda: float(of(2, 3)), ValueError, "Tensor.__float__ at"),
    "truth of many": (lambda: bool(of(2, 3)), ValueError, "truth value"),
    "length of a number": (lambda: len(Tensor(1.0)), TypeError, "0-d tensor"),
    "no super().__init__()": (lambda: NoSuper()(of(2)), AttributeError, r"super\(\).__init__"),
    "no construct": (lambda: NoConstruct()(of(2)), AttributeError, "construct"),
    "too few inputs": (lambda: Net()(), TypeError, "Net at .*missing 1 required"),
    "too many inputs": (lambda: Net()(of(2, 3), of(2, 3)), TypeError, "Net at .*takes 2 positional"),
    "an unknown input": (lambda: Net()(y=of(2, 3)), TypeError, "Net at .*unexpected keyword"),
    "float classes": (
        lambda: nn.SoftmaxCrossEntropyWithLogits(sparse=True)(of(2, 3), of(2)),
        TypeError,
        "expected indices of dtype",
    ),
    "classes without sparse": (
        lambda: nn.SoftmaxCrossEntropyWithLogits()(of(2, 3), whole(2)),
        TypeError,
        "expected labels of dtype",
    ),
    "a batch of other size": (
        lambda: nn.SoftmaxCrossEntropyWithLogits(sparse=True)(of(2, 3), whole(4)),
        ValueError,
        "expected labels",
    ),
    "float targets": (
        lambda: nn.CrossEntropyLoss()(of(2, 3), of(2)),
        TypeError,
        "cross_entropy: expected a target of int32",
    ),
    "integer targets": (lambda: nn.BCELoss()(of(2, 3), whole(2, 3)), TypeError, "BinaryCrossEntropy: expected labels"),
    "shapes of MSELoss": (lambda: nn.MSELoss()(of(2, 3), of(4, 5)), ValueError, "Sub.*expected shapes that broadcast"),
    "a gradient too few": (lambda: optimizer()((of(2, 3),)), RuntimeError, "Adam: expected a gradient for each of 2"),
    "a position too high": (
        lambda: ms.grad(lambda x: x * x, 3)(of(2)),
        IndexError,
        "gradient: expected a position of the 1 arguments",
    ),
    "a position as text": (lambda: ms.grad(lambda x: x * x, "a")(of(2)), TypeError, "grad_position"),
    "sens of another shape": (
        lambda: ops.GradOperation(sens_param=True)(lambda x: x * x)(of(2, 3), of(7)),
        ValueError,
        "broadcast",
    ),
    "gradient of no function": (lambda: ms.grad(3)(of(2)), TypeError, "expected arguments that it takes"),
    "axis of vmap": (lambda: ops.vmap(lambda x: x + 1, in_axes=5)(of(2, 3)), ValueError, "vmap"),
}
MAKING: dict[str, Row] = {
    "a kernel below zero": (lambda: nn.Conv2d(3, 4, -3), ValueError, "'kernel_size' must be int and must > 0"),
    "a kernel as text": (lambda: nn.Conv2d(3, 4, "3"), TypeError, "'kernel_size' must be int"),
    "a stride of zero": (lambda: nn.Conv2d(3, 4, 3, stride=0), ValueError, "'stride' must be int and must > 0"),
    "an unknown pad_mode": (lambda: nn.Conv2d(3, 4, 3, pad_mode="sam"), ValueError, "'pad_mode' must be one of"),
    "a misspelled keyword": (lambda: nn.Conv2d(3, 4, kernel=3), TypeError, "Conv2d at .*'kernel'"),
    "a missing argument": (lambda: nn.Dense(3), TypeError, "Dense at .*'out_channels'"),
    "channels as text": (lambda: nn.Dense("3", 4), TypeError, "'in_channels' must be int, but got str"),
    "no channels": (lambda: nn.Dense(0, 4), ValueError, "'in_channels' must be int and must > 0"),
    "an unknown initializer": (lambda: nn.Dense(3, 4, weight_init="nrmal"), ValueError, 'Did you mean "normal"'),
    "a weight of another shape": (lambda: nn.Dense(3, 4, weight_init=of(3, 4)), ValueError, "shape"),
    "a pooling of nothing": (lambda: nn.MaxPool2d(0), ValueError, "'kernel_size' must be int and must > 0"),
    "a function in SequentialCell": (
        lambda: nn.SequentialCell([nn.ReLU(), print]),
        TypeError,
        "must be subclass of Cell",
    ),
    "an unknown reduction": (lambda: nn.MSELoss("avg"), ValueError, "'reduction' must be in"),
    "an optimizer of nothing": (lambda: nn.SGD([], 0.1), ValueError, "must not be empty"),
    "an optimizer of None": (lambda: nn.Adam(None, 0.1), ValueError, "can not be None"),
    "two parameters of one name": (
        lambda: nn.SGD([Parameter(of(2), name="w"), Parameter(of(2), name="w")], 0.1),
        ValueError,
        "'w' already exists",
    ),
    "a rate below zero": (lambda: optimizer(learning_rate=-0.1), ValueError, "learning_rate"),
    "a decay below zero": (lambda: optimizer(weight_decay=-1.0), ValueError, "weight_decay"),
    "rates and milestones": (lambda: nn.piecewise_constant_lr([2, 5], [0.1]), ValueError, "same with the size"),
    "ragged rows": (lambda: Tensor([[1, 2], [3]]), TypeError, "expected rows of one length"),
    "a dict as data": (lambda: Tensor({"a": 1}), TypeError, "expected a number, list"),
    "a number as a name": (lambda: Parameter(of(2), name=3), ValueError, "name should be 'string'"),
    "data of another shape": (
        lambda: Parameter(of(2, 3), name="a").set_data(of(4, 5)),
        ValueError,
        "expected data of shape",
    ),
    "an unknown setting": (lambda: ms.set_context(moode=1), ValueError, "moode"),
    "an unknown mode": (lambda: ms.set_context(mode=5), ValueError, "mode"),
    "an unknown device": (lambda: ms.set_context(device_target="TPU"), ValueError, "device_target"),
    "a seed below zero": (lambda: ms.set_seed(-1), ValueError, "seed"),
    "a missing checkpoint": (lambda: ms.load_checkpoint("/nowhere/x.ckpt"), ValueError, "does not exist"),
    "a weight of another net": (
        lambda: ms.load_param_into_net(Net(), {"dense.weight": Parameter(of(5, 5))}),
        RuntimeError,
        "same shape",
    ),
    "a list for a dict": (lambda: ms.load_param_into_net(Net(), [1]), TypeError, "should be a dict"),
    "a number as a file": (lambda: ms.save_checkpoint(Net(), 3), TypeError, "ckpt_file_name"),
    "an unknown amp level": (lambda: ms.amp.auto_mixed_precision(Net(), "O7"), ValueError, "O7"),
    "text for to_float": (lambda: Net().to_float("float16"), ValueError, "to_float"),
    "no loss": (lambda: trained(loss_fn=None), TypeError, "takes 2 positional"),
    "no metrics": (lambda: Model(Net(), nn.MSELoss()).eval(ds.NumpySlicesDataset([1], ["a"])), ValueError, "metrics"),
    "an unknown metric": (lambda: Model(Net(), nn.MSELoss(), metrics={"acuracy"}), KeyError, "accuracy"),
    "epochs below zero": (lambda: trained(-1), ValueError, "'epoch' must be int and > 0"),
    "epochs as text": (lambda: trained("a"), TypeError, "'epoch' must be int, but got str"),
    "a metric too few inputs": (lambda: Accuracy().update(of(2, 3)), ValueError, "it needs 2 inputs"),
    "a batch of nothing": (lambda: ds.NumpySlicesDataset([1, 2], ["a"]).batch(0), ValueError, "batch_size.*at least 1"),
    "an unknown column": (
        lambda: ds.NumpySlicesDataset([1, 2], ["a"]).project(["z"]),
        ValueError,
        "expected columns of",
    ),
    "columns of two lengths": (lambda: ds.NumpySlicesDataset(([1, 2], [1]), ["a", "b"]), ValueError, "one length"),
    "a missing folder": (lambda: ds.ImageFolderDataset("/nowhere"), ValueError, "expected a folder"),
    "a missing MindRecord file": (lambda: ds.MindDataset("/nowhere/a.mindrecord"), ValueError, "a.mindrecord"),
    "an image of no size": (lambda: ds.vision.Resize(-1), ValueError, "Resize"),
    "a function that is none": (lambda: ms.jit(3)(of(2)), TypeError, "3"),
}


@pytest.mark.parametrize("name", [*CALLS, *MAKING])
def test_a_mistake_raises_what_mindspore_raises_and_names_the_line(name: str, either_mode: int) -> None:
    call, kind, words = {**CALLS, **MAKING}[name]
    with pytest.raises(kind, match=rf"(?s){words}") as caught:
        call()
    assert caught.match(LINE)


def test_errors_of_the_script_stay_as_they_are(either_mode: int) -> None:
    def failing(x: Tensor) -> Tensor:
        raise ValueError("my own")

    for call in (lambda: Calling(failing)(of(2)), lambda: ms.grad(failing)(of(2)), lambda: ms.jit(failing)(of(2))):
        with pytest.raises(ValueError) as caught:
            call()
        assert caught.value.args == ("my own",)


def test_an_error_is_told_once_with_the_innermost_line_of_the_script(either_mode: int) -> None:
    with pytest.raises(ValueError) as caught:
        ms.grad(Calling(lambda x: Net()(x)))(of(2, 5))
    text = str(caught.value)
    assert text.count("MatMul") == 1 and text.count("return self.dense(x)") <= 1 and "test_mistakes.py" in text


def test_a_file_that_is_damaged_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.ckpt"
    for content, words in ((b"", "is empty"), (b"\n\xff\xff\xff nonsense", "expected a MindSpore checkpoint")):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=rf"(?s)a\.ckpt.*{words}.*{LINE}"):
            ms.load_checkpoint(str(path))


def test_a_model_without_an_optimizer_computes_the_loss() -> None:
    trained(optimizer=None)


@pytest.mark.parametrize(
    ("name", "dtype"),
    [("selu", "bool"), ("fast_gelu", "bool"), ("elu", "int8"), ("celu", "bool"), ("pinv", "float16"),
     ("eig", "float16"), ("inverse", "float16"), ("hardshrink", "int8")],
)  # fmt: skip
def test_a_dtype_that_an_operator_does_not_take_is_a_type_error(name: str, dtype: str) -> None:
    """Also where PyTorch says so in other words than of dtypes."""
    pytest.importorskip("torch")
    with pytest.raises(TypeError, match="expected operands that it takes"):
        getattr(ops, name)(Tensor(np.eye(2).astype(dtype)))
