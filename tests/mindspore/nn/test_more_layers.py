"""Paddings, pictures, functions, normalisations, embeddings and attention against PyTorch or formulas of MindSpore."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest

from msdump.mindspore import Parameter, Tensor, nn, ops
from tests.mindspore.nn.against_torch import RNG, check, numbers

torch = pytest.importorskip("torch")
F = torch.nn.functional

ROWS, LINE, IMAGE, VOLUME = numbers(4, 6), numbers(2, 4, 8), numbers(2, 4, 6, 7), numbers(2, 4, 3, 4, 5)
SQUARE = numbers(3, 3)


def _instance_norm(x: Any, gamma: Any, beta: Any) -> Any:
    return F.instance_norm(x, weight=gamma, bias=beta)


CASES: dict[str, tuple[Any, Any, list[Any]]] = {
    "constant_1d": (lambda: nn.ConstantPad1d((1, 2), 0.5), lambda x: F.pad(x, (1, 2), value=0.5), [LINE]),
    "constant_2d": (
        lambda: nn.ConstantPad2d((-1, 1, 0, 2), 0.5),
        lambda x: F.pad(x, (-1, 1, 0, 2), value=0.5),
        [IMAGE],
    ),
    "constant_3d": (lambda: nn.ConstantPad3d(1, -1), lambda x: F.pad(x, (1,) * 6, value=-1), [VOLUME]),
    "zero_2d": (lambda: nn.ZeroPad2d(1), lambda x: F.pad(x, (1,) * 4), [IMAGE]),
    "reflection_1d": (lambda: nn.ReflectionPad1d((2, 1)), lambda x: F.pad(x, (2, 1), "reflect"), [LINE]),
    "reflection_2d": (lambda: nn.ReflectionPad2d((1, 2, 3, 0)), lambda x: F.pad(x, (1, 2, 3, 0), "reflect"), [IMAGE]),
    "reflection_3d": (lambda: nn.ReflectionPad3d(1), lambda x: F.pad(x, (1,) * 6, "reflect"), [VOLUME]),
    "replication_1d": (lambda: nn.ReplicationPad1d(2), lambda x: F.pad(x, (2, 2), "replicate"), [LINE]),
    "replication_2d": (
        lambda: nn.ReplicationPad2d((1, 0, 2, 1)),
        lambda x: F.pad(x, (1, 0, 2, 1), "replicate"),
        [IMAGE],
    ),
    "replication_3d": (lambda: nn.ReplicationPad3d(1), lambda x: F.pad(x, (1,) * 6, "replicate"), [VOLUME]),
    "pad_reflect": (
        lambda: nn.Pad(((1, 1), (0, 2)), "REFLECT"),
        lambda x: F.pad(x[None], (0, 2, 1, 1), "reflect")[0],
        [ROWS],
    ),
    "batch_norm_3d": (
        lambda: nn.BatchNorm3d(4, use_batch_statistics=True),
        lambda x, gamma, beta: F.batch_norm(x, None, None, gamma, beta, True),
        [VOLUME],
    ),
    "instance_norm_1d": (lambda: nn.InstanceNorm1d(4), _instance_norm, [LINE]),
    "instance_norm_2d": (lambda: nn.InstanceNorm2d(4), _instance_norm, [IMAGE]),
    "instance_norm_3d": (lambda: nn.InstanceNorm3d(4), _instance_norm, [VOLUME]),
    "pixel_shuffle": (lambda: nn.PixelShuffle(2), lambda x: F.pixel_shuffle(x, 2), [IMAGE]),
    "pixel_unshuffle": (lambda: nn.PixelUnshuffle(2), lambda x: F.pixel_unshuffle(x, 2), [IMAGE[..., :6]]),
    "nearest": (lambda: nn.Upsample((9, 5)), lambda x: F.interpolate(x, (9, 5)), [IMAGE]),
    "nearest_line": (lambda: nn.Upsample(scale_factor=2.0), lambda x: F.interpolate(x, scale_factor=2.0), [LINE]),
    "linear": (lambda: nn.Upsample(11, mode="linear"), lambda x: F.interpolate(x, 11, mode="linear"), [LINE]),
    "bilinear": (
        lambda: nn.Upsample((9, 5), mode="bilinear", align_corners=True),
        lambda x: F.interpolate(x, (9, 5), mode="bilinear", align_corners=True),
        [IMAGE],
    ),
    "bicubic": (
        lambda: nn.Upsample((9, 5), mode="bicubic", align_corners=True),
        lambda x: F.interpolate(x, (9, 5), mode="bicubic", align_corners=True),
        [IMAGE],
    ),
    "trilinear": (
        lambda: nn.Upsample((4, 2, 7), mode="trilinear"),
        lambda x: F.interpolate(x, (4, 2, 7), mode="trilinear"),
        [VOLUME],
    ),
    "area": (lambda: nn.Upsample((3, 4), mode="area"), lambda x: F.interpolate(x, (3, 4), mode="area"), [IMAGE]),
    "lgamma": (nn.LGamma, torch.lgamma, [numbers(5, low=0.2)]),
    "mat_mul": (lambda: nn.MatMul(True), lambda x, y: x.transpose(-1, -2) @ y, [numbers(2, 3, 4), numbers(3, 5)]),
    "norm": (lambda: nn.Norm(1, True), lambda x: x.norm(dim=1, keepdim=True), [ROWS]),
    "clip_by_norm": (
        lambda: nn.ClipByNorm(1),
        lambda x, n: x * n / torch.maximum(x.norm(dim=1, keepdim=True), n),
        [ROWS, np.array(1.5, np.float32)],
    ),
    "tril": (lambda: nn.Tril(), lambda x: x.tril(), [SQUARE]),
    "triu": (lambda: nn.Triu(), lambda x: x.triu(), [SQUARE]),
}


@pytest.mark.parametrize("name", CASES)
def test_layers_equal_torch(name: str, either_mode: int) -> None:
    make, reference, data = CASES[name]
    check(make(), reference, data, rtol=3e-5, atol=2e-5)


def test_patches_as_channels(either_mode: int) -> None:
    """Source: ExtractImagePatches: the place in the window counts before the channel."""
    patches = nn.Unfold([1, 2, 3, 1], [1, 2, 1, 1], [1, 1, 1, 1])(Tensor(IMAGE)).asnumpy()
    expected = F.unfold(torch.tensor(IMAGE), (2, 3), stride=(2, 1)).view(2, 4, 6, 3, 5).transpose(1, 2)
    np.testing.assert_array_equal(patches, expected.reshape(2, 24, 3, 5).numpy())


@pytest.mark.parametrize("make", [nn.Dropout1d, nn.Dropout2d, nn.Dropout3d])
def test_whole_channels_are_dropped(make: Any, either_mode: int) -> None:
    data = {
        nn.Dropout1d: np.ones((8, 16, 3)),
        nn.Dropout2d: np.ones((8, 16, 3, 2)),
        nn.Dropout3d: np.ones((8, 16, 2, 1, 2)),
    }
    layer, ones = make(0.25), Tensor(data[make].astype(np.float32))
    assert layer(ones) is ones or np.array_equal(layer(ones).asnumpy(), ones.asnumpy())
    layer.set_train()
    result = layer(ones).asnumpy().reshape(128, -1)
    assert set(np.unique(result)) == {0.0, np.float32(1 / 0.75)} and np.all(result == result[:, :1])
    gradient = ops.grad(lambda x: layer(x).sum())(ones).asnumpy()
    assert set(np.unique(gradient)) <= {0.0, np.float32(1 / 0.75)}


def _attention(options: dict[str, Any]) -> tuple[Any, Any]:
    """Ours and PyTorch's, with equal weights."""
    theirs = torch.nn.MultiheadAttention(8, 2, **options)
    renamed = {"has_bias" if key == "bias" else key: value for key, value in options.items()}
    ours = nn.MultiheadAttention(8, 2, **renamed)
    for name, weight in theirs.named_parameters():
        ours.parameters_dict()[name].set_data(Tensor(weight.detach().numpy()))
    return ours, theirs


@pytest.mark.parametrize(
    "options",
    [{}, {"batch_first": True, "bias": False}, {"add_bias_kv": True, "add_zero_attn": True}, {"kdim": 5, "vdim": 6}],
)
def test_attention_equals_torch(options: dict[str, Any], either_mode: int) -> None:
    ours, theirs = _attention(options)
    query, key, value = numbers(3, 4, 8), numbers(3, 4, options.get("kdim", 8)), numbers(3, 4, options.get("vdim", 8))
    batch, length = (3, 4) if "batch_first" in options else (4, 3)
    padding = RNG.random((batch, length)) < 0.3
    padding[:, 0] = False
    mask = np.triu(np.full((length, length), -1.0, np.float32), 1)
    left_out = torch.tensor(padding).float().masked_fill(torch.tensor(padding), -math.inf)
    operands = map(torch.tensor, (query, key, value))
    expected, weights = theirs(*operands, key_padding_mask=left_out, attn_mask=torch.tensor(mask))
    found, found_weights = ours(*map(Tensor, (query, key, value)), Tensor(padding), attn_mask=Tensor(mask))
    np.testing.assert_allclose(found.asnumpy(), expected.detach().numpy(), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found_weights.asnumpy(), weights.detach().numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("norm_first", [False, True])
def test_encoders_equal_torch(norm_first: bool, either_mode: int) -> None:
    options = {"dim_feedforward": 16, "dropout": 0.0, "norm_first": norm_first}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch tells which of its fast paths it cannot take
        theirs = torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(8, 2, **options), 2)
    ours = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, **options), 2)
    named = ours.parameters_dict()
    for name, weight in theirs.named_parameters():
        ms_name = name.replace("linear", "dense")
        if "norm" in name:
            ms_name = ms_name.replace("weight", "gamma").replace("bias", "beta")
        named.pop(ms_name).set_data(Tensor(weight.detach().numpy()))
    assert not named
    data, mask = numbers(3, 2, 8), np.triu(np.full((3, 3), -1.0, np.float32), 1)
    expected = theirs(torch.tensor(data), mask=torch.tensor(mask)).detach().numpy()
    np.testing.assert_allclose(ours(Tensor(data), Tensor(mask)).asnumpy(), expected, rtol=1e-4, atol=1e-5)


class _Loss(nn.Cell):
    """Mean square of a product with a weight."""

    def __init__(self) -> None:
        super().__init__()
        self.w = Parameter(Tensor(np.ones(3, np.float32)), "w")

    def construct(self, x: Any) -> Any:
        return ((x * self.w) ** 2).mean()


def test_wrappers(either_mode: int) -> None:
    net, data = _Loss(), Tensor(numbers(4, 3))
    parts = nn.PipelineCell(net, 2)(data)
    np.testing.assert_array_equal(nn.GradAccumulationCell(net, 2)(data).asnumpy(), parts.asnumpy())
    np.testing.assert_allclose(float(parts), 2 * float(net(data)), rtol=1e-5)
    np.testing.assert_allclose(float(nn.MicroBatchInterleaved(net)(data)), 2 * float(net(data)), rtol=1e-5)


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: nn.ConstantPad2d((1,), 0), ValueError),
        (lambda: nn.ReflectionPad1d(-1), ValueError),
        (lambda: nn.ReplicationPad2d([1, 1, 1, 1]), TypeError),
        (lambda: nn.Upsample((3, 3), mode="linear")(Tensor(IMAGE)), ValueError),
        (lambda: nn.Upsample()(Tensor(IMAGE)), ValueError),
        (lambda: nn.InstanceNorm2d(0), ValueError),
        (lambda: nn.SyncBatchNorm(4, process_groups=[[0, 1]]), RuntimeError),
        (lambda: nn.MultiheadAttention(7, 2), ValueError),
        (lambda: nn.TransformerEncoderLayer(8, 2, activation="tanh"), ValueError),
        (lambda: nn.PipelineCell(_Loss(), 0), ValueError),
        (lambda: nn.PipelineCell(_Loss(), 3)(Tensor(numbers(4, 3))), ValueError),
    ],
)
def test_bad_arguments(make: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        make()


@pytest.mark.parametrize(("size", "fraction", "kept"), [((2, 64, 64), 56 / 64, (56, 56)), ((1, 3, 5, 8), 0.5, (3, 4))])
def test_the_middle_of_a_picture(size: tuple[int, ...], fraction: float, kept: tuple[int, int]) -> None:
    picture = RNG.normal(size=size).astype(np.float32)
    cuts = [int(n * (1 - fraction) / 2) for n in size[-2:]]
    middle = picture[..., cuts[0] : cuts[0] + kept[0], cuts[1] : cuts[1] + kept[1]]
    np.testing.assert_array_equal(nn.CentralCrop(fraction)(Tensor(picture)).asnumpy(), middle)
    with pytest.raises(ValueError, match="central_fraction"):
        nn.CentralCrop(0.0)


@pytest.mark.parametrize("has_bias", [True, False])
def test_a_dense_layer_of_two_inputs(has_bias: bool) -> None:
    layer = nn.BiDense(3, 4, 5, has_bias=has_bias)
    first, second = RNG.normal(size=(2, 6, 3)).astype(np.float32), RNG.normal(size=(2, 6, 4)).astype(np.float32)
    weight = layer.weight.asnumpy()
    assert weight.shape == (5, 3, 4) and np.abs(weight).max() <= 3**-0.5
    expected = np.einsum("...i,oij,...j->...o", first, weight, second)
    expected = expected + layer.bias.asnumpy() if has_bias else expected
    np.testing.assert_allclose(layer(Tensor(first), Tensor(second)).asnumpy(), expected, rtol=1e-5, atol=1e-5)
