"""Recurrent layers: RNN, GRU and LSTM, and single steps of them. Weights and operators as in MindSpore on a CPU."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from msdump.mindspore.common.declared import variants
from msdump.mindspore.common.dtype import DType, float16, float32, int32, int64
from msdump.mindspore.common.initializer import Uniform, initializer
from msdump.mindspore.common.parameter import Parameter, ParameterTuple
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.dispatch import call, execute
from msdump.mindspore.names import publish
from msdump.mindspore.nn.declared import Declared
from msdump.mindspore.nn.layer.basic import Dropout
from msdump.mindspore.ops import function as F

# Weights of one layer and direction: input, hidden, their biases (None without).
Weights = tuple[Any, Any, Any, Any]
# (x (N, input), state, weights) -> state after one step.
Step = Callable[[Tensor, Any, Weights], Any]

# Matrices that each kind stacks, one per gate.
_GATES = {"RNN_TANH": 1, "RNN_RELU": 1, "GRU": 3, "LSTM": 4}


def _product(x: Tensor, weight: Tensor, bias: Any = None) -> Tensor:
    result = call("MatMul", x, weight, transpose_a=False, transpose_b=True)
    return result if bias is None else F.add(result, bias)


def _halves(count: int, gates: Tensor) -> tuple[Tensor, ...]:
    return execute("Split", [gates], {"axis": 1, "output_num": count})


def _elman_step(function: Callable[[Tensor], Tensor], x: Tensor, h: Tensor, weights: Weights) -> Tensor:
    return function(F.add(_product(x, weights[0], weights[2]), _product(h, weights[1], weights[3])))


def _gru_step(x: Tensor, h: Tensor, weights: Weights) -> Tensor:
    """Gates in the order reset, update, new."""
    of_x = _halves(3, _product(x, weights[0], weights[2]))
    of_h = _halves(3, _product(h, weights[1], weights[3]))
    reset, update = F.sigmoid(F.add(of_x[0], of_h[0])), F.sigmoid(F.add(of_x[1], of_h[1]))
    new = F.tanh(F.add(of_x[2], F.mul(reset, of_h[2])))
    return F.add(new, F.mul(update, F.sub(h, new)))


def _lstm_step(x: Tensor, state: tuple[Tensor, Tensor], weights: Weights) -> tuple[Tensor, Tensor]:
    """Gates in the order input, forget, cell, output."""
    h, c = state
    gates = F.add(_product(x, weights[0]), _product(h, weights[1]))
    if weights[2] is not None:
        gates = F.add(F.add(gates, weights[2]), weights[3])
    parts = _halves(4, gates)
    i, f, g, o = F.sigmoid(parts[0]), F.sigmoid(parts[1]), F.tanh(parts[2]), F.sigmoid(parts[3])
    c = F.add(F.mul(f, c), F.mul(i, g))
    return F.mul(o, F.tanh(c)), c


_STEPS: dict[str, Step] = {
    "RNN_TANH": partial(_elman_step, F.tanh),
    "RNN_RELU": partial(_elman_step, F.relu),
    "GRU": _gru_step,
    "LSTM": _lstm_step,
}


class _Recurrence(Declared, takes="mode"):
    """All steps of one layer in one direction: (x (L, N, input), state, lengths, weights) -> (outputs, state)."""

    def construct(self, x: Tensor, state: Any, lengths: Tensor | None, weights: Weights) -> tuple[Tensor, Any]:
        weights = tuple(None if each is None else F.cast(each, x.dtype) for each in weights)  # type: ignore[assignment]
        if self.mode == "LSTM" and lengths is None:
            return self._whole_lstm(x, state, weights)
        step = _STEPS[self.mode]
        outputs = []
        for number in range(x.shape[0]):
            after = step(F.squeeze(x[number : number + 1], 0), state, weights)
            output = after[0] if self.mode == "LSTM" else after
            if lengths is None:
                state = after
            else:
                is_inside = F.greater(F.expand_dims(lengths, 1), number)
                state = self._kept(is_inside, after, state)
                output = F.select(F.broadcast_to(is_inside, output.shape), output, F.zeros_like(output))
            outputs.append(output)
        return F.stack(outputs), state

    def _kept(self, is_inside: Tensor, after: Any, before: Any) -> Any:
        """The new state where the sequence goes on, the old one where it has ended."""
        if self.mode == "LSTM":
            return tuple(_chosen(is_inside, new, old) for new, old in zip(after, before, strict=True))
        return _chosen(is_inside, after, before)

    def _whole_lstm(self, x: Tensor, state: tuple[Tensor, Tensor], weights: Weights) -> tuple[Tensor, Any]:
        """Source: MindSpore on a CPU: one operator, whose weights are one column."""
        parts = [F.reshape(weights[0], (-1, 1, 1)), F.reshape(weights[1], (-1, 1, 1))]
        has_bias = weights[2] is not None
        if has_bias:
            parts.append(F.reshape(F.add(weights[2], weights[3]), (-1, 1, 1)))
        h, c = (F.expand_dims(each, 0) for each in state)
        attrs = {"input_size": weights[0].shape[1], "hidden_size": weights[1].shape[1], "num_layers": 1}
        attrs |= {"has_bias": has_bias, "bidirectional": False, "dropout": 0.0}
        output, h, c, _, _ = execute("LSTM", [x, h, c, F.concat(parts)], attrs)
        return output, (h, c)


def _chosen(condition: Tensor, new: Tensor, old: Tensor) -> Tensor:
    return F.select(F.broadcast_to(condition, new.shape), new, old)


_SETTINGS = """input_size:count hidden_size:count num_layers:count=1 has_bias:bool=True batch_first:bool=False
    dropout:number=0.0 bidirectional:bool=False dtype=float32"""


class _Recurrent(Declared, takes=_SETTINGS):
    """Base of layers: (x, hx, seq_length) -> (outputs of the last layer, states after the last step of all layers)."""

    mode = "LSTM"
    dropout: Any

    def _set_up(self, input_size: int, dtype: DType) -> None:
        if not 0 <= self.dropout < 1:
            raise ValueError(
                f"For '{self.cls_name}', the 'dropout' must be a number in range [0, 1) representing the probability "
                f"of an element being zeroed, but got {self.dropout}."
            )
        self.rnn = _Recurrence(self.mode)
        self.is_lstm = self.mode == "LSTM"
        self.dropout = float(self.dropout)
        self.dropout_op = Dropout(p=self.dropout)
        self._make_weights(_GATES[self.mode], input_size, dtype)

    def _make_weights(self, gates: int, input_size: int, dtype: DType) -> None:
        """Source: names of MindSpore's parameters: weight_ih_l0, bias_hh_l1_reverse."""
        bound = Uniform(1 / math.sqrt(self.hidden_size))
        rows = gates * self.hidden_size
        lists: dict[str, list[Parameter]] = {"weight_ih": [], "weight_hh": [], "bias_ih": [], "bias_hh": []}
        for layer in range(self.num_layers):
            width = input_size if layer == 0 else self.hidden_size * (2 if self.bidirectional else 1)
            for suffix in ("", "_reverse") if self.bidirectional else ("",):
                shapes: dict[str, tuple[int, ...]] = {"weight_ih": (rows, width), "weight_hh": (rows, self.hidden_size)}
                if self.has_bias:
                    shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)}
                for kind, shape in shapes.items():
                    name = f"{kind}_l{layer}{suffix}"
                    lists[kind].append(Parameter(initializer(bound, shape, dtype), name=name))
        self.w_ih_list, self.w_hh_list = ParameterTuple(lists["weight_ih"]), ParameterTuple(lists["weight_hh"])
        self.b_ih_list, self.b_hh_list = ParameterTuple(lists["bias_ih"]), ParameterTuple(lists["bias_hh"])

    def _weights(self, index: int) -> Weights:
        biases = (self.b_ih_list[index], self.b_hh_list[index]) if self.has_bias else (None, None)
        return (self.w_ih_list[index], self.w_hh_list[index], *biases)

    def construct(self, x: Tensor, hx: Any = None, seq_length: Tensor | None = None) -> tuple[Tensor, Any]:
        self._check(x, hx, seq_length)
        batch = x.shape[0 if self.batch_first else 1]
        if hx is None:
            shape = (self.num_layers * (2 if self.bidirectional else 1), batch, self.hidden_size)
            hx = (F.zeros(shape, x.dtype), F.zeros(shape, x.dtype)) if self.is_lstm else F.zeros(shape, x.dtype)
        if self.batch_first:
            x = F.transpose(x, (1, 0, 2))
        states: list[Any] = []
        for layer in range(self.num_layers):
            x = self._layer(layer, x, hx, seq_length, states)
            if self.dropout and layer < self.num_layers - 1:
                x = self.dropout_op(x)
        if self.batch_first:
            x = F.transpose(x, (1, 0, 2))
        if not self.is_lstm:
            return x, F.reshape(F.concat(states), hx.shape)
        h, c = (F.concat([state[slot] for state in states]) for slot in (0, 1))
        return x, (F.reshape(h, hx[0].shape), F.reshape(c, hx[1].shape))

    def _layer(self, layer: int, x: Tensor, hx: Any, lengths: Tensor | None, states: list[Any]) -> Tensor:
        """Outputs of one layer; its states go to `states`, both directions one after the other."""
        directions = 2 if self.bidirectional else 1
        outputs = []
        for direction in range(directions):
            index = layer * directions + direction
            state = (hx[0][index], hx[1][index]) if self.is_lstm else hx[index]
            data = _reversed(x, lengths) if direction else x
            output, after = self.rnn(data, state, lengths, self._weights(index))
            outputs.append(_reversed(output, lengths) if direction else output)
            states.append(after)
        return F.concat(outputs, 2) if self.bidirectional else outputs[0]

    def _check(self, x: Tensor, hx: Any, seq_length: Tensor | None) -> None:
        if not isinstance(x, Tensor):
            raise TypeError(f"For '{self.cls_name}', the 'x' must be Tensor, but got {type(x).__name__}.")
        if self.is_lstm and hx is not None and (not isinstance(hx, tuple) or len(hx) != 2):
            raise TypeError(f"For '{self.cls_name}', the 'hx' must be a tuple of length 2, got {type(hx).__name__}.")
        if not self.is_lstm and hx is not None and not isinstance(hx, Tensor):
            raise TypeError(f"For '{self.cls_name}', the 'hx' must be Tensor, but got {type(hx).__name__}.")
        if seq_length is not None and seq_length.dtype not in (int32, int64):
            raise TypeError(f"For '{self.cls_name}', the 'seq_length' must be int32 or int64, not {seq_length.dtype}.")
        batch = x.shape[0 if self.batch_first else 1]
        if seq_length is not None and seq_length.shape[0] != batch:
            raise ValueError(
                f"For '{self.cls_name}' batch size of x and seq_length must be equal, but got {batch} of x and "
                f"{seq_length.shape[0]} of seq_length."
            )


def _reversed(x: Tensor, lengths: Tensor | None) -> Tensor:
    """The steps (axis 0) backwards; with lengths only those inside of each sequence."""
    if lengths is None:
        return call("ReverseV2", x, axis=(0,))
    return call("ReverseSequence", x, lengths, seq_dim=0, batch_dim=1)


class _ByNonlinearity(Declared):
    """Base of what computes tanh, or `nonlinearity` "relu", of the sum of both products."""

    def _begin(self, settings: dict[str, Any]) -> None:
        chosen = settings["nonlinearity"]
        if chosen not in ("tanh", "relu"):
            name = type(self).__name__
            raise ValueError(f"For '{name}', the 'nonlinearity' must be in ['tanh', 'relu'], but got {chosen}.")
        super()._begin(settings)
        self.mode = f"RNN_{chosen.upper()}"


class RNN(_ByNonlinearity, _Recurrent, takes=f"{_SETTINGS} | nonlinearity='tanh'"):
    """Elman networks: tanh, or `nonlinearity` "relu", of the sum of both products."""


_LAYERS = variants(
    _Recurrent,
    __name__,
    GRU=("Gated recurrent units.", {"mode": "GRU"}),
    LSTM=("Long short-term memory; its state is a pair (h, c).", {"mode": "LSTM"}),
)


class _RecurrentCell(Declared, takes="input_size:count hidden_size:count has_bias:bool=True dtype=float32"):
    """Base of single steps: (x (N, input_size), state) -> state."""

    mode = "LSTM"

    def _set_up(self, dtype: DType) -> None:
        input_size, hidden_size = self.input_size, self.hidden_size
        rows, bound = _GATES[self.mode] * hidden_size, Uniform(1 / math.sqrt(hidden_size))
        self.weight_ih = Parameter(initializer(bound, (rows, input_size), dtype), name="weight_ih")
        self.weight_hh = Parameter(initializer(bound, (rows, hidden_size), dtype), name="weight_hh")
        self.bias_ih: Any = None
        self.bias_hh: Any = None
        if self.has_bias:
            self.bias_ih = Parameter(initializer(bound, (rows,), dtype), name="bias_ih")
            self.bias_hh = Parameter(initializer(bound, (rows,), dtype), name="bias_hh")

    def construct(self, x: Tensor, hx: Any) -> Any:
        if self.mode == "LSTM" and (not isinstance(hx, tuple) or len(hx) != 2):
            raise TypeError(f"For '{self.cls_name}', the 'hx' must be a tuple of length 2, got {type(hx).__name__}.")
        for name, each in (("x", x), *(("hx", part) for part in (hx if isinstance(hx, tuple) else (hx,)))):
            if not isinstance(each, Tensor):
                raise TypeError(f"For '{self.cls_name}', the '{name}' must be Tensor, but got {type(each).__name__}.")
            if each.dtype not in (float16, float32):
                raise TypeError(f"For '{self.cls_name}', the '{name}' must be float16 or float32, got {each.dtype}.")
        return _STEPS[self.mode](x, hx, (self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh))


class RNNCell(
    _ByNonlinearity,
    _RecurrentCell,
    takes="input_size:count hidden_size:count has_bias:bool=True nonlinearity='tanh' dtype=float32",
):
    """One step of an Elman network."""


_CELLS = variants(
    _RecurrentCell,
    __name__,
    GRUCell=("One step of a gated recurrent unit.", {"mode": "GRU"}),
    LSTMCell=("One step of long short-term memory: (x, (h, c)) -> (h, c).", {"mode": "LSTM"}),
)
globals().update(_LAYERS | _CELLS)

publish(__name__)
