"""Attention with several heads, and encoders and decoders built of it. Weights are named as in MindSpore."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from msdump.mindspore.common.dtype import bool_, float_type
from msdump.mindspore.common.initializer import HeUniform, Uniform, XavierNormal, XavierUniform, initializer
from msdump.mindspore.common.parameter import Parameter
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.names import publish
from msdump.mindspore.nn.declared import Declared
from msdump.mindspore.nn.layer.activation import GELU, ReLU
from msdump.mindspore.nn.layer.basic import Dense, Dropout
from msdump.mindspore.nn.layer.container import CellList
from msdump.mindspore.nn.layer.normalization import LayerNorm
from msdump.mindspore.ops import function as F
from msdump.mindspore.releases import TRANSFORMER_NAMES


def _linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    result = F.matmul(x, F.transpose(weight, (1, 0)))
    return result if bias is None else F.add(result, bias)


def _dense(inputs: int, outputs: int, has_bias: bool = True) -> Dense:
    return Dense(inputs, outputs, HeUniform(math.sqrt(5)), Uniform(1 / math.sqrt(inputs)), has_bias)


class MultiheadAttention(
    Declared,
    takes="embed_dim num_heads dropout=0.0 has_bias=True add_bias_kv=False add_zero_attn=False kdim=None vdim=None "
    "batch_first=False",
):
    """(query (L, N, E), key (S, N, kdim), value (S, N, vdim)) -> (output (L, N, E), weights (N, L, S)).

    Edges: without a batch axis all have one less; with `batch_first` the batch is the first axis; masks are bools
           (True is left out) or numbers that are added.
    """

    bias_k: Any
    bias_v: Any

    def _set_up(self, has_bias: bool, add_bias_kv: bool, kdim: int | None, vdim: int | None) -> None:
        width = self.embed_dim
        if width % self.num_heads:
            raise ValueError("The init argument 'embed_dim' must be divisible by 'num_heads'.")
        self.kdim, self.vdim = width if kdim is None else kdim, width if vdim is None else vdim
        self.head_dim = width // self.num_heads
        self.in_proj_weight = self.in_proj_bias = self.bias_k = self.bias_v = None
        if self.kdim == self.vdim == width:
            self.in_proj_weight = _xavier((3 * width, width), "in_proj_weight")
        else:
            for name, inputs in (("q", width), ("k", self.kdim), ("v", self.vdim)):
                setattr(self, f"{name}_proj_weight", _xavier((width, inputs), f"{name}_proj_weight"))
        if has_bias:
            self.in_proj_bias = Parameter(initializer("zeros", 3 * width), "in_proj_bias")
        self.out_proj = _dense(width, width, has_bias)
        if add_bias_kv:
            self.bias_k = Parameter(initializer(XavierNormal(), (1, 1, width)), "bias_k")
            self.bias_v = Parameter(initializer(XavierNormal(), (1, 1, width)), "bias_v")

    def construct(
        self, query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None = None,
        need_weights: bool = True, attn_mask: Tensor | None = None, average_attn_weights: bool = True,
    ) -> tuple[Any, ...]:  # fmt: skip
        is_batched = query.ndim == 3
        operands = [query, key, value]
        if self.batch_first and is_batched:
            operands = [F.swapaxes(each, 0, 1) for each in operands]
        if not is_batched:
            operands = [F.expand_dims(each, 1) for each in operands]
            key_padding_mask = None if key_padding_mask is None else F.expand_dims(key_padding_mask, 0)
        output, weights = self._attended(operands, self._mask(operands, attn_mask, key_padding_mask))
        if average_attn_weights:
            weights = F.div(F.sum(weights, 1), float(self.num_heads))
        if not is_batched:
            output, weights = F.squeeze(output, 1), F.squeeze(weights, 0)
        elif self.batch_first:
            output = F.swapaxes(output, 0, 1)
        return (output, weights) if need_weights else (output,)

    def _projected(self, operands: list[Tensor]) -> list[Tensor]:
        """Queries, keys and values of all heads side by side."""
        biases: Any = (None,) * 3 if self.in_proj_bias is None else F.split(self.in_proj_bias, self.embed_dim)
        if self.in_proj_weight is None:
            weights: Any = (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
        else:
            weights = F.split(self.in_proj_weight, self.embed_dim)
        return [_linear(*each) for each in zip(operands, weights, biases, strict=True)]

    def _attended(self, operands: list[Tensor], mask: Tensor | None) -> tuple[Tensor, Tensor]:
        length, batch = operands[0].shape[:2]
        query, key, value = self._projected(operands)
        if self.bias_k is not None:
            key = F.concat([key, F.tile(self.bias_k, (1, batch, 1))])
            value = F.concat([value, F.tile(self.bias_v, (1, batch, 1))])
        heads = [self._heads(each) for each in (query, key, value)]
        if self.add_zero_attn:
            zeros = F.zeros((batch, self.num_heads, 1, self.head_dim), query.dtype)
            heads[1:] = [F.concat([each, zeros], 2) for each in heads[1:]]
        scale = math.sqrt(math.sqrt(self.head_dim))
        scores = F.matmul(F.div(heads[0], scale), F.div(F.swapaxes(heads[1], -1, -2), scale))
        if mask is not None:
            scores = F.add(scores, mask)
        weights = F.softmax(scores, -1)
        if self.training and self.dropout:
            weights = F.dropout(weights, self.dropout)
        joined = F.reshape(F.transpose(F.matmul(weights, heads[2]), (2, 0, 1, 3)), (length * batch, self.embed_dim))
        return F.reshape(self.out_proj(joined), (length, batch, self.embed_dim)), weights

    def _heads(self, x: Tensor) -> Tensor:
        """(L, N, E) -> (N, heads, L, E / heads)."""
        split = F.reshape(x, (x.shape[0], x.shape[1], self.num_heads, self.head_dim))
        return F.transpose(split, (1, 2, 0, 3))

    def _mask(self, operands: list[Tensor], mask: Tensor | None, padding: Tensor | None) -> Tensor | None:
        """What is added to the scores: (1 or N, 1 or heads, L, S)."""
        added = [None if each is None else self._additive(each, operands[0]) for each in (mask, padding)]
        length, source, batch = operands[0].shape[0], operands[1].shape[0], operands[0].shape[1]
        extra = (self.bias_k is not None) + self.add_zero_attn
        parts = []
        if added[0] is not None:
            shapes = {2: (1, 1, length, source), 3: (batch, self.num_heads, length, source)}
            if added[0].ndim not in shapes:
                raise ValueError(f"attn_mask's dimension {added[0].ndim} is not supported. Should be 2D or 3D.")
            parts.append(F.reshape(added[0], shapes[added[0].ndim]))
        if added[1] is not None:
            parts.append(F.reshape(added[1], (batch, 1, 1, source)))
        if not parts:
            return None
        total = parts[0] if len(parts) == 1 else F.add(*parts)
        if extra:
            total = F.concat([total, F.zeros((*total.shape[:3], extra), total.dtype)], 3)
        return total

    def _additive(self, mask: Tensor, like: Tensor) -> Tensor:
        if mask.dtype in float_type:
            return mask
        if mask.dtype != bool_:
            raise ValueError("only bool and floating types of masks are supported")
        return F.masked_fill(F.zeros(mask.shape, like.dtype), mask, -math.inf)


def _xavier(shape: tuple[int, int], name: str) -> Parameter:
    return Parameter(initializer(XavierUniform(), shape), name)


def _activation(activation: Any) -> Any:
    """relu or gelu, of a name, a function or a Cell.   Raises: ValueError for anything else."""
    named = {"relu": F.relu, "gelu": F.gelu}
    if isinstance(activation, str) and activation in named:
        return named[activation]
    if isinstance(activation, ReLU | GELU) or any(activation is each for each in named.values()):
        return activation
    raise ValueError(f"The argument 'activation' must be relu or gelu, as name, function or Cell, not {activation}.")


_SETTINGS = """dim_feedforward=2048 dropout=0.1 activation='relu' layer_norm_eps=1e-05 batch_first=False
    norm_first=False"""


class _Layer(Declared, takes=f"d_model nhead {_SETTINGS}"):
    """Base of layers: what follows the attention.

    parts     blocks with a shortcut and a normalisation each
    made_of   the settings, which stacks of layers repeat
    """

    parts = 2

    def _set_up(self, **settings: Any) -> None:
        self.made_of = settings
        d_model, nhead, width, dropout, activation, epsilon, batch_first, norm_first = settings.values()
        self.self_attn = MultiheadAttention(d_model, nhead, dropout, batch_first=batch_first)
        if self.parts == 3:
            self.multihead_attn = MultiheadAttention(d_model, nhead, dropout, batch_first=batch_first)
        self._dense_names = ("dense1", "dense2") if TRANSFORMER_NAMES.is_in_force else ("linear1", "linear2")
        for name, sizes in zip(self._dense_names, ((d_model, width), (width, d_model)), strict=True):
            setattr(self, name, _dense(*sizes))
        self.dropout = Dropout(p=dropout)
        for number in range(1, self.parts + 1):
            setattr(self, f"norm{number}", LayerNorm((d_model,), epsilon=epsilon))
            setattr(self, f"dropout{number}", Dropout(p=dropout))
        self.activation = _activation(activation)
        self.norm_first = norm_first

    def _around(self, number: int, x: Tensor, block: Any) -> Tensor:
        """x plus what a block makes of it, normalised before or after."""
        norm, dropout = getattr(self, f"norm{number}"), getattr(self, f"dropout{number}")
        if self.norm_first:
            return F.add(x, dropout(block(norm(x))))
        return norm(F.add(x, dropout(block(x))))

    def _forward(self, x: Tensor) -> Any:
        first, second = (getattr(self, name) for name in self._dense_names)
        return second(self.dropout(self.activation(first(x))))

    def _own(self, x: Tensor, mask: Tensor | None, padding: Tensor | None) -> Any:
        return self.self_attn(x, x, x, padding, False, mask)[0]


class TransformerEncoderLayer(_Layer):
    """Attention of a sequence to itself, then two dense layers, each with a shortcut and a normalisation."""

    def construct(
        self, src: Tensor, src_mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None
    ) -> Tensor:
        x = self._around(1, src, lambda each: self._own(each, src_mask, src_key_padding_mask))
        return self._around(2, x, self._forward)


class TransformerDecoderLayer(_Layer):
    """As the encoder's, with attention to the encoder's result between."""

    parts = 3

    def construct(
        self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None,
    ) -> Tensor:  # fmt: skip
        def of_memory(x: Tensor) -> Any:
            return self.multihead_attn(x, memory, memory, memory_key_padding_mask, False, memory_mask)[0]

        x = self._around(1, tgt, lambda each: self._own(each, tgt_mask, tgt_key_padding_mask))
        return self._around(3, self._around(2, x, of_memory), self._forward)


class _Stack(Declared, takes="layer num_layers norm=None"):
    """Base of stacks: layers like a given one, each with the values that it has, and a normalisation."""

    def _set_up(self, layer: Any, norm: Any) -> None:
        self.layers = CellList([_alike(layer) for _ in range(self.num_layers)])
        self.norm = norm

    def _normalised(self, x: Tensor) -> Tensor:
        return x if self.norm is None else self.norm(x)


def _alike(layer: Any) -> Any:
    """Source: layers of a stack begin with equal weights."""
    made = type(layer)(**layer.made_of)
    for new, old in zip(made.get_parameters(), layer.get_parameters(), strict=True):
        np.copyto(new.array, old.array)
    return made


class TransformerEncoder(_Stack, takes="encoder_layer num_layers norm=None"):
    """Encoder layers one after another."""

    def _set_up(self, encoder_layer: Any, norm: Any) -> None:
        super()._set_up(encoder_layer, norm)

    def construct(
        self, src: Tensor, src_mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None
    ) -> Tensor:
        for layer in self.layers:
            src = layer(src, src_mask, src_key_padding_mask)
        return self._normalised(src)


class TransformerDecoder(_Stack, takes="decoder_layer num_layers norm=None"):
    """Decoder layers one after another."""

    def _set_up(self, decoder_layer: Any, norm: Any) -> None:
        super()._set_up(decoder_layer, norm)

    def construct(
        self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None,
    ) -> Tensor:  # fmt: skip
        masks = (tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask)
        for layer in self.layers:
            tgt = layer(tgt, memory, *masks)
        return self._normalised(tgt)


publish(__name__)
