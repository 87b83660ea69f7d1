"""Which operators functions, layers and optimizers are made of: what MindSpore's own dump of a graph lists.

    python tests/reference/composed_operators.py FILE

in a Python with MindSpore writes a JSON object: program -> types of its operators in the order of execution, and
"gradient of PROGRAM" -> those of its gradient alone. tests/golden/mindspore_composed_operators.json holds such objects
of MindSpore 2.0.0 and 2.7.0 on a CPU under "2.0" and "2.7"; a program that a release cannot run is not in its object.
Tests run the same programs with msdump's implementation.
"""

from __future__ import annotations

import glob
import importlib.util
import json
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

# A program is an expression of operands, or `LAYER @ EXPRESSION` with the layer as `net`. `params` are two parameters
# that an optimizer trains, `groups` the same in two groups. No gradient is taken of programs that end with "!".
TABLE = """
    ops.cross_entropy(x, t)
    ops.cross_entropy(x, t, w)
    ops.cross_entropy(x, t, label_smoothing=0.1)
    ops.cross_entropy(x, t, reduction='sum')
    ops.cross_entropy(x, t, reduction='none')
    ops.cross_entropy(img, imt)
    ops.cross_entropy(img, imt, w6)
    ops.cross_entropy(v, t0)
    ops.cross_entropy(x, p)
    ops.cross_entropy(x, p, w)
    ops.cross_entropy(x, p, label_smoothing=0.1)
    ops.cross_entropy(x, p, reduction='none')
    ops.cross_entropy(x, p, reduction='sum')
    nn.CrossEntropyLoss() @ net(x, t)
    nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction='mean') @ net(x, t)
    nn.SoftmaxCrossEntropyWithLogits(sparse=True) @ net(x, t)
    ops.nll_loss(x, t)
    ops.nll_loss(x, t, w)
    ops.nll_loss(x, t, reduction='sum')
    ops.nll_loss(x, t, reduction='none')
    ops.nll_loss(img, imt)
    nn.NLLLoss() @ net(x, t)
    ops.mse_loss(x, a, 'mean')
    ops.l1_loss(x, a, 'mean')
    ops.kl_div(x, p, 'mean')
    ops.huber_loss(x, a, 'mean')
    ops.smooth_l1_loss(x, a, 1.0, 'mean')
    ops.binary_cross_entropy(p, q, pos, 'mean')
    ops.binary_cross_entropy_with_logits(x, q, pos, pos, 'mean')
    ops.mse_loss(x, a, 'sum')
    ops.l1_loss(x, a, 'sum')
    ops.kl_div(x, p, 'sum')
    ops.huber_loss(x, a, 'sum')
    ops.smooth_l1_loss(x, a, 1.0, 'sum')
    ops.binary_cross_entropy(p, q, pos, 'sum')
    ops.binary_cross_entropy_with_logits(x, q, pos, pos, 'sum')
    ops.mse_loss(x, a, 'none')
    ops.l1_loss(x, a, 'none')
    ops.kl_div(x, p, 'none')
    ops.huber_loss(x, a, 'none')
    ops.smooth_l1_loss(x, a, 1.0, 'none')
    ops.binary_cross_entropy(p, q, pos, 'none')
    ops.binary_cross_entropy_with_logits(x, q, pos, pos, 'none')
    ops.kl_div(x, p, 'batchmean')
    ops.margin_ranking_loss(x, a, p)
    ops.hinge_embedding_loss(x, a)
    ops.multilabel_soft_margin_loss(x, a)
    nn.MSELoss() @ net(p, q)
    nn.L1Loss() @ net(p, q)
    nn.SmoothL1Loss() @ net(p, q)
    nn.BCELoss() @ net(p, q)
    nn.MAELoss() @ net(p, q)
    nn.RMSELoss() @ net(p, q)
    nn.KLDivLoss() @ net(p, q)
    nn.HuberLoss() @ net(p, q)
    nn.BCEWithLogitsLoss() @ net(x, q)
    ops.softmax(pos6)
    ops.log_softmax(pos6)
    ops.gelu(pos6)
    ops.leaky_relu(pos6)
    ops.relu(pos6)
    ops.relu6(pos6)
    ops.sigmoid(pos6)
    ops.tanh(pos6)
    ops.silu(pos6)
    ops.elu(pos6)
    ops.celu(pos6)
    ops.selu(pos6)
    ops.hardswish(pos6)
    ops.hardsigmoid(pos6)
    ops.mish(pos6)
    ops.softsign(pos6)
    ops.softplus(pos6)
    ops.logsigmoid(pos6)
    ops.tanhshrink(pos6)
    ops.hardtanh(pos6)
    ops.softmin(pos6)
    ops.glu(pos6)
    ops.hardshrink(pos6)
    ops.softshrink(pos6)
    ops.fast_gelu(pos6)
    ops.square(pos6)
    ops.sqrt(pos6)
    ops.rsqrt(pos6)
    ops.exp(pos6)
    ops.log(pos6)
    ops.neg(pos6)
    ops.abs(pos6)
    ops.sign(pos6)  !
    ops.reciprocal(pos6)
    ops.floor(pos6)  !
    ops.erf(pos6)
    ops.sin(pos6)
    ops.cos(pos6)
    ops.log1p(pos6)
    ops.expm1(pos6)
    ops.logsumexp(pos6, 1)
    ops.mean(pos6)
    ops.sum(pos6)
    ops.amax(pos6)
    ops.amin(pos6)
    ops.prod(pos6)
    ops.std(pos6)
    ops.var(pos6)
    ops.norm(pos6)
    ops.flatten(pos6)
    ops.squeeze(pos6)
    ops.argmax(pos6)  !
    ops.gelu(x, 'tanh')
    ops.prelu(x, w)
    ops.threshold(x, 0.1, 0.2)
    ops.dropout(x, 0.5, True)
    ops.dropout2d(img, 0.5, True)
    ops.cumsum(x, 1)
    ops.batch_norm(img, w6, pos_6, w6, w6, False)
    ops.add(pos, pos2)
    ops.sub(pos, pos2)
    ops.mul(pos, pos2)
    ops.div(pos, pos2)
    ops.true_divide(pos, pos2)
    ops.pow(pos, pos2)
    ops.maximum(pos, pos2)
    ops.minimum(pos, pos2)
    ops.floor_div(pos, pos2)  !
    ops.floor_mod(pos, pos2)
    ops.equal(pos, pos2)  !
    ops.less(pos, pos2)  !
    ops.greater(pos, pos2)  !
    ops.not_equal(pos, pos2)  !
    ops.atan2(pos, pos2)
    ops.hypot(pos, pos2)
    ops.remainder(pos, pos2)
    ops.matmul(x, m)
    x + a
    x - a
    x * a
    x / pos
    pos ** 2
    pos ** a
    x / 2
    x * 2
    1 - x
    x + w
    x * w
    x / w
    x - col
    x % pos
    -x
    x // pos  !
    x > a  !
    ops.matmul(b, m)
    ops.matmul(b, bm)
    ops.matmul(b4, bm)
    ops.matmul(x, v)
    ops.bmm(b, bm)
    ops.mm(x, m)
    ops.addmm(c, x, m)
    ops.dense(x, m35, v3)
    x.sum(1)
    x.sum()
    x.mean()
    x.mean(1, True)
    x.max()
    x.max(1)
    x.min()
    x.std()
    x.var()
    ops.mean(x, 1)
    ops.sum(x, 1)
    ops.ReduceSum()(x, 1)
    ops.ReduceMean()(x, 1)
    ops.where(x > 0, x, a)
    ops.select(x > 0, x, a)
    ops.masked_fill(x, x > 0, 0.0)
    ops.clamp(x, -1.0, 1.0)
    ops.clip_by_value(x, -1.0, 1.0)
    ops.clip_by_global_norm((x, a), 1.0)[0]
    ops.concat((x, a), 1)
    ops.stack((x, a), 1)
    ops.split(x, 2, 0)[0]
    ops.chunk(x, 2, 0)[1]
    x[:, 1:3]
    x[0]
    x[:, 0]
    x[t2]
    x[..., None]
    x.view(-1)
    x.reshape(2, 10)
    x.T
    x.transpose(1, 0)
    ops.transpose(x, (1, 0))
    x.swapaxes(0, 1)
    x.expand_dims(0)
    ops.tile(x, (2, 1))
    ops.broadcast_to(w, (4, 5))
    ops.gather(x, t2, 1)
    ops.gather_elements(x, 1, t42)
    ops.zeros_like(x) + x
    ops.ones_like(x) + x
    ops.tril(x)
    ops.triu(x)
    ops.pad(x, (1, 1))
    ops.outer(v, w)
    ops.cosine_similarity(x, a)
    ops.repeat_interleave(x, 2, 1)
    ops.interpolate(img, size=(10, 8), mode='nearest')
    ops.interpolate(img, size=(10, 8), mode='bilinear')
    ops.max_pool2d(img, 2, 2)
    ops.avg_pool2d(img, 2, 2)
    ops.adaptive_avg_pool2d(img, 1)
    ops.conv2d(img, cw)
    x.argmax(1)  !
    ops.max(x, 1)  !
    ops.topk(x, 2)  !
    x.astype(ms.float16)  !
    ops.one_hot(t, 5, on, off)  !
    nn.Softmax() @ net(x)
    nn.LogSoftmax() @ net(x)
    nn.GELU() @ net(x)
    nn.GELU(False) @ net(x)
    nn.LeakyReLU() @ net(x)
    nn.ReLU() @ net(x)
    nn.ReLU6() @ net(x)
    nn.Sigmoid() @ net(x)
    nn.Tanh() @ net(x)
    nn.SiLU() @ net(x)
    nn.ELU() @ net(x)
    nn.PReLU(5) @ net(x)
    nn.HSwish() @ net(x)
    nn.HSigmoid() @ net(x)
    nn.Mish() @ net(x)
    nn.LogSigmoid() @ net(x)
    nn.FastGelu() @ net(x)
    nn.CELU() @ net(x)
    nn.SeLU() @ net(x)
    nn.Hardtanh() @ net(x)
    nn.Softsign() @ net(x)
    nn.Tanhshrink() @ net(x)
    nn.Threshold(0.1, 0.2) @ net(x)
    nn.Flatten() @ net(x)
    nn.Dropout(p=0.5) @ net(x)
    nn.Identity() @ net(x)
    nn.LayerNorm((5,)) @ net(x)
    nn.BatchNorm1d(5) @ net(x)
    nn.Dense(5, 3) @ net(x)
    nn.Dense(5, 3, activation='relu') @ net(x)
    nn.Dense(5, 3, has_bias=False) @ net(x)
    nn.Pad(((0, 0), (1, 1))) @ net(x)
    nn.Dropout(p=0.5).set_train(False) @ net(x)
    nn.BatchNorm1d(5).set_train(False) @ net(x)
    nn.Dense(5, 3) @ net(b)
    nn.Embedding(7, 3) @ net(t)
    nn.Conv2d(6, 3, 3, has_bias=True) @ net(img)
    nn.Conv2dTranspose(6, 3, 3, has_bias=True) @ net(img)
    nn.BatchNorm2d(6) @ net(img)
    nn.GroupNorm(2, 6) @ net(img)
    nn.MaxPool2d(2, 2) @ net(img)
    nn.AvgPool2d(2, 2) @ net(img)
    nn.MaxPool2d(3, 2, 'pad', 1) @ net(img)
    nn.AdaptiveAvgPool2d(1) @ net(img)
    nn.ZeroPad2d(1) @ net(img)
    nn.Conv1d(6, 3, 3, has_bias=True) @ net(line)
    nn.MaxPool1d(2, 2) @ net(line)
    nn.AvgPool1d(2, 2) @ net(line)
    nn.Conv3d(6, 3, 3) @ net(vol)
    nn.PixelShuffle(2) @ net(shuf)
    nn.LSTM(4, 3) @ net(seq, (h, h2))[0]
    nn.LSTM(4, 3) @ net(seq, (h, h2))  !
    nn.LSTM(4, 3) @ net(seq)[0]  !
    nn.LSTM(4, 3, bidirectional=True) @ net(seq, (hh, hh2))[0]  !
    nn.LSTM(4, 3, 2, batch_first=True) @ net(bat, (hh, hh2))[0]  !
    nn.LSTM(4, 3) @ net(seq, (h, h2), lens)[0]  !
    nn.GRU(4, 3) @ net(seq, h)[0]
    nn.RNN(4, 3) @ net(seq, h)[0]
    nn.GRUCell(4, 3) @ net(x4, h3)
    nn.RNNCell(4, 3) @ net(x4, h3)
    nn.LSTMCell(4, 3) @ net(x4, (h3, c3))[0]
    nn.MultiheadAttention(8, 2) @ net(s8, s8, s8)[0]
    nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0) @ net(s8)
    nn.Momentum(params, 0.1, 0.9) @ net((gw, gb))  !
    nn.Momentum(params, 0.1, 0.9, weight_decay=0.01) @ net((gw, gb))  !
    nn.Momentum(params, [0.1, 0.2, 0.3], 0.9) @ net((gw, gb))  !
    nn.Momentum(params, nn.ExponentialDecayLR(0.1, 0.9, 4), 0.9) @ net((gw, gb))  !
    nn.Momentum(params, 0.1, 0.9, loss_scale=4.0) @ net((gw, gb))  !
    nn.Momentum(groups, 0.1, 0.9) @ net((gw, gb))  !
    nn.SGD(params, 0.1) @ net((gw, gb))  !
    nn.SGD(params, 0.1, 0.9, weight_decay=0.01) @ net((gw, gb))  !
    nn.Adam(params, 0.1) @ net((gw, gb))  !
    nn.Adam(params, 0.1, weight_decay=0.01) @ net((gw, gb))  !
    nn.Adam(params, 0.1, use_amsgrad=True) @ net((gw, gb))  !
    nn.Adam(groups, 0.1) @ net((gw, gb))  !
    nn.AdamWeightDecay(params, 0.1, weight_decay=0.01) @ net((gw, gb))  !
    nn.AdamWeightDecay(params, 0.1) @ net((gw, gb))  !
    nn.RMSProp(params, 0.1) @ net((gw, gb))  !
    nn.RMSProp(params, 0.1, centered=True) @ net((gw, gb))  !
    nn.Adagrad(params) @ net((gw, gb))  !
    nn.Adadelta(params) @ net((gw, gb))  !
    nn.FTRL(params) @ net((gw, gb))  !
    nn.LazyAdam(params) @ net((gw, gb))  !
"""


class Program(NamedTuple):
    """net: what makes the layer, "" for none; operands: names of arrays that the expression reads."""

    text: str
    net: str
    expression: str
    operands: tuple[str, ...]
    has_gradient: bool


def _arrays() -> dict[str, Any]:
    random = np.random.RandomState(0)

    def numbers(*shape: int, low: float = -2.0, high: float = 2.0) -> Any:
        return random.uniform(low, high, shape).astype(np.float32)

    def classes(count: int, *shape: int) -> Any:
        return random.randint(0, count, shape).astype(np.int32)

    positive = {"low": 0.2, "high": 2.0}
    between = {"low": 0.1, "high": 0.9}
    weights = {"low": 0.5, "high": 1.5}
    return {
        "x": numbers(4, 5), "a": numbers(4, 5), "p": numbers(4, 5, **between), "q": numbers(4, 5, **between),
        "pos": numbers(4, 5, **positive), "pos2": numbers(4, 5, **positive), "pos6": numbers(4, 6, **positive),
        "w": numbers(5, **weights), "w6": numbers(6, **weights), "pos_6": numbers(6, **weights), "v": numbers(5),
        "v3": numbers(3), "col": numbers(4, 1), "m": numbers(5, 3), "m35": numbers(3, 5), "c": numbers(4, 3),
        "b": numbers(2, 4, 5), "bm": numbers(2, 5, 3), "b4": numbers(3, 2, 4, 5), "img": numbers(2, 6, 5, 4),
        "imt": classes(6, 2, 5, 4), "line": numbers(2, 6, 8), "vol": numbers(2, 6, 4, 4, 4),
        "shuf": numbers(1, 8, 2, 2), "cw": numbers(3, 6, 2, 2), "t": classes(5, 4), "t0": np.int32(3),
        "t2": np.array([0, 2], np.int32), "t42": np.array([[0, 2]] * 4, np.int32),
        "signs": np.array([1, -1, 1, -1], np.int32), "on": np.float32(1), "off": np.float32(0),
        "seq": numbers(3, 2, 4), "bat": numbers(2, 3, 4), "h": numbers(1, 2, 3), "h2": numbers(1, 2, 3),
        "hh": numbers(2, 2, 3), "hh2": numbers(2, 2, 3), "lens": np.array([3, 2], np.int32), "x4": numbers(2, 4),
        "h3": numbers(2, 3), "c3": numbers(2, 3), "s8": numbers(3, 2, 8), "s8b": numbers(3, 2, 8),
        "gw": numbers(3, 2), "gb": numbers(3),
    }  # fmt: skip


ARRAYS = _arrays()


def _program(line: str) -> Program:
    text = line.rstrip(" !")
    net, _, expression = text.rpartition(" @ ")
    words = re.findall(r"(?<![\w.'])[a-z_]\w*", expression)
    operands = tuple(dict.fromkeys(word for word in words if word in ARRAYS))
    return Program(text, net, re.sub(r"\bnet\(", "self.net(", expression), operands, not line.endswith("!"))


PROGRAMS = tuple(_program(line.strip()) for line in TABLE.strip().splitlines())

_HEAD = """
import {mindspore} as ms
from {mindspore} import nn, ops


class Gradient(nn.Cell):
    def __init__(self, net, weights, has_integers):
        super().__init__()
        self.net = net
        self.weights = ms.ParameterTuple(weights) if weights else None
        self.grad = ops.GradOperation(get_all=not has_integers, get_by_list=bool(weights), sens_param=True)

    def construct(self, sens, *operands):
        if self.weights is not None:
            return self.grad(self.net, self.weights)(*operands, sens)
        return self.grad(self.net)(*operands, sens)
"""
_CELL = """

class Program{number}(nn.Cell):
    def __init__(self, params):
        super().__init__()
        groups = [{{"params": [params[0]], "lr": 0.2, "weight_decay": 0.01}}, {{"params": [params[1]]}}]
        self.net = {net}

    def construct(self, {operands}):
        return {expression}
"""


def write_cells(path: str, mindspore: str = "mindspore") -> Any:
    """The module of a file with a cell for each program: MindSpore compiles what has source.

    path       of the file
    mindspore  package that its programs import
    """
    cells = [
        _CELL.format(
            number=number, net=each.net or "None", operands=", ".join(each.operands), expression=each.expression
        )
        for number, each in enumerate(PROGRAMS)
    ]
    with open(path, "w", encoding="utf-8") as file:
        file.write(_HEAD.format(mindspore=mindspore) + "".join(cells))
    spec = importlib.util.spec_from_file_location("composed_programs", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


class Runner:
    """Runs programs of a module of `write_cells` with its MindSpore."""

    def __init__(self, module: Any) -> None:
        self.module, self.ms = module, module.ms
        self.results: dict[int, Any] = {}

    def cell(self, number: int) -> Any:
        """A new cell of a program, in training unless the program says otherwise."""
        params = [
            self.ms.Parameter(self.ms.Tensor(ARRAYS[key] * 1), name=name) for key, name in (("gw", "w"), ("gb", "b"))
        ]
        cell = getattr(self.module, f"Program{number}")(params)
        if "set_train" not in PROGRAMS[number].net:
            cell.set_train()
        return cell

    def forward(self, number: int) -> Any:
        """Run a program.   Returns its cell."""
        cell = self.cell(number)
        self.results[number] = cell(*self._operands(number))
        return cell

    def backward(self, number: int) -> Any:
        """Run the gradient of a program that `forward` ran.   Returns its cell."""
        has_integers = any(ARRAYS[name].dtype == np.int32 for name in PROGRAMS[number].operands)
        cell = self.cell(number)
        gradient = self.module.Gradient(cell, list(cell.trainable_params()), has_integers)
        if "set_train" not in PROGRAMS[number].net:
            gradient.set_train()
        gradient(self._halves(self.results[number]), *self._operands(number))
        return gradient

    def _operands(self, number: int) -> list[Any]:
        return [self.ms.Tensor(ARRAYS[name]) for name in PROGRAMS[number].operands]

    def _halves(self, result: Any) -> Any:
        if isinstance(result, (list, tuple)):
            return tuple(self._halves(each) for each in result)
        return self.ms.Tensor(np.full(result.shape, 0.5, np.float32))


def main(path: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        common = {
            "dump_mode": 0, "path": folder, "net_name": "Net", "iteration": "all", "saved_data": "tensor",
            "input_output": 2, "kernels": [], "support_device": [0],
        }  # fmt: skip
        with open(folder + "/dump.json", "w", encoding="utf-8") as file:
            json.dump({"common_dump_settings": common, "e2e_dump_settings": {"enable": True, "trans_flag": True}}, file)
        os.environ["MINDSPORE_DUMP_CONFIG"] = folder + "/dump.json"
        runner = Runner(write_cells(folder + "/programs.py"))
        runner.ms.set_context(mode=runner.ms.GRAPH_MODE)
        seen: set[str] = set()

        def new_ops() -> list[str]:
            pattern = folder + "/rank_0/execution_order/ms_execution_order_graph_*.csv"
            files = sorted(set(glob.glob(pattern)) - seen)
            seen.update(files)
            lines = [line for each in files for line in Path(each).read_text(encoding="utf-8").splitlines()[1:]]
            return [line.split("/")[-1].rpartition("-op")[0] for line in lines]

        rows = {}
        for number, program in enumerate(PROGRAMS):
            runs = [(program.text, runner.forward)]
            runs += [("gradient of " + program.text, runner.backward)] if program.has_gradient else []
            for name, run in runs:
                try:
                    run(number)
                except Exception as error:  # noqa: BLE001  (what this release has not, or cannot run)
                    print(name, type(error).__name__, file=sys.stderr)
                    new_ops()
                    break
                rows[name] = " ".join(new_ops())
            # A long run that ends early has measured something.
            with open(path, "w", encoding="utf-8") as file:
                json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main(sys.argv[1])
