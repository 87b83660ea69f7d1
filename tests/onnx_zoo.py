"""Which models agree with their ONNX exports: `pip install --no-deps torchvision==0.28.0 timm transformers onnxscript
onnx-ir tokenizers regex pillow; python -m tests.onnx_zoo`.

Each model has random weights and a small input. It is dumped as eager PyTorch and as the model that either exporter
makes, and the two dumps are compared both ways. Names on the command line choose models.
"""

from __future__ import annotations

import contextlib
import functools
import io
import json
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch

import msdump
from msdump.analysis.compare.result import Comparison
from msdump.analysis.compare.sentences import headline
from msdump.analysis.steps import Operator, opened, read_steps
from msdump.operators.kinds import is_mover, kind_of

Model = tuple[torch.nn.Module, tuple[torch.Tensor, ...]]
EXPORTERS = {"TorchScript": False, "dynamo": True}
_VOCABULARY, _LENGTH = 99, 9


def _images(side: int) -> tuple[torch.Tensor, ...]:
    return (torch.randn(1, 3, side, side),)


def _words() -> tuple[torch.Tensor, ...]:
    return (torch.randint(3, _VOCABULARY, (1, _LENGTH)),)


@functools.cache
def _kernels() -> torch.library.Library:
    """Names of the kernels of torchvision's wheel, which load into the build of torch that it was made with alone; no
    model here calls them.
    """
    library = torch.library.Library("torchvision", "DEF")
    for kernel in ("nms", "qnms"):
        library.define(f"{kernel}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    return library


def _of_torchvision(name: str) -> Callable[[], Model]:
    def build() -> Model:
        _kernels()
        import torchvision

        return getattr(torchvision.models, name)(num_classes=10), _images(64)

    return build


def _vision_transformer() -> Model:
    _kernels()
    from torchvision.models import VisionTransformer

    net = VisionTransformer(32, 8, 2, 4, 32, 64, num_classes=10)
    torch.nn.init.normal_(net.heads[0].weight)
    return net, _images(32)


def _of_timm(name: str, side: int = 64, **settings: Any) -> Callable[[], Model]:
    def build() -> Model:
        _kernels()
        import timm

        return timm.create_model(name, num_classes=10, **settings), _images(side)

    return build


class _Text(torch.nn.Module):
    """A model of transformers whose one input are words and whose results are tensors."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, words: torch.Tensor) -> Any:
        # Without a mask the models look for sentences in a row by an operator that ONNX does not have.
        return self.model(input_ids=words, attention_mask=torch.ones_like(words), use_cache=False, return_dict=False)


class _Encoder(_Text):
    def forward(self, words: torch.Tensor) -> Any:
        return self.model(input_ids=words, return_dict=False)


def _of_transformers(name: str, **settings: Any) -> Callable[[], Model]:
    def build() -> Model:
        _kernels()  # it imports torchvision where that is installed
        import transformers

        family = name.removesuffix("EncoderModel").removesuffix("Model").removesuffix("ForCausalLM")
        config = getattr(transformers, f"{family}Config")(vocab_size=_VOCABULARY, **settings)
        model = getattr(transformers, name)(config)
        return (_Encoder if "Encoder" in name or family == "DistilBert" else _Text)(model), _words()

    return build


_BERT = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
MODELS: dict[str, Callable[[], Model]] = {
    "resnet18": _of_torchvision("resnet18"),
    "mobilenet_v2": _of_torchvision("mobilenet_v2"),
    "mobilenet_v3_small": _of_torchvision("mobilenet_v3_small"),
    "squeezenet1_1": _of_torchvision("squeezenet1_1"),
    "shufflenet_v2_x0_5": _of_torchvision("shufflenet_v2_x0_5"),
    "vision transformer": _vision_transformer,
    "efficientnet_lite0": _of_timm("efficientnet_lite0"),
    "convnext_atto": _of_timm("convnext_atto"),
    "mixer_s32_224": _of_timm("mixer_s32_224", img_size=64),
    "swin_tiny": _of_timm("swin_tiny_patch4_window7_224", 56, img_size=56, depths=(2, 2), num_heads=(2, 4),
                          embed_dim=32),
    "BERT": _of_transformers("BertModel", **_BERT),
    "GPT-2": _of_transformers("GPT2Model", n_embd=32, n_layer=2, n_head=4, n_positions=32),
    "Llama": _of_transformers("LlamaForCausalLM", **_BERT, num_key_value_heads=2),
    "T5 encoder": _of_transformers("T5EncoderModel", d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4,
                                   attn_implementation="eager"),
    "Mistral": _of_transformers("MistralForCausalLM", **_BERT, num_key_value_heads=2),
    "DistilBERT": _of_transformers("DistilBertModel", dim=32, n_layers=2, n_heads=4, hidden_dim=64),
}  # fmt: skip


def built(name: str) -> Model:
    """A model for evaluation, and what it reads."""
    torch.manual_seed(0)
    return with_noise(MODELS[name]())


def with_noise(model: Model) -> Model:
    """The model with numbers in all places, as one that was trained has them."""
    net, inputs = model
    with torch.no_grad():
        # Biases of zero and norms that change nothing are in no model that was trained.
        for key, tensor in net.state_dict().items():
            if tensor.is_floating_point():
                tensor += torch.rand_like(tensor) if key.endswith("running_var") else 0.1 * torch.randn_like(tensor)
    return net.eval(), inputs


def dump_of_torch(net: torch.nn.Module, inputs: tuple[torch.Tensor, ...], folder: Path) -> None:
    """Every operator of the model as it runs."""
    config = {
        "common_dump_settings": {
            "dump_mode": 0, "path": str(folder), "net_name": "Net", "iteration": "0", "saved_data": "tensor",
            "input_output": 0, "kernels": [], "support_device": [0],
        },
        "e2e_dump_settings": {"enable": True, "trans_flag": True},
    }  # fmt: skip
    path = folder.with_suffix(".json")
    path.write_text(json.dumps(config), encoding="utf-8")
    with torch.no_grad(), msdump.watch(net, str(path)):
        net(*inputs)


def exported(net: torch.nn.Module, inputs: tuple[torch.Tensor, ...], is_dynamo: bool) -> onnx.ModelProto:
    """What the exporter makes of a model."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        path = Path(folder) / "model.onnx"
        torch.onnx.export(net, inputs, str(path), dynamo=is_dynamo)
        return onnx.load(path)


def dump_of_onnx(model: onnx.ModelProto, inputs: Iterable[torch.Tensor], folder: Path) -> None:
    """Every operator of an ONNX model."""
    folder.mkdir()
    with msdump.acl.dump({"dump": {"dump_path": str(folder), "dump_list": [{}], "dump_mode": "all"}}):
        msdump.acl.load(model.SerializeToString())(*(np.asarray(value) for value in inputs))


def computing(folder: Path) -> list[Operator]:
    """The operators of a dump that compute something."""
    steps = read_steps(opened(folder))
    return [one for step in steps for one in step.operators if not one.is_parameter and not is_mover(one.op_type)]


def left_over(
    comparison: Comparison, sides: tuple[list[Operator], list[Operator]]
) -> tuple[Counter[str], Counter[str]]:
    """Operators of each side, by type, that are in no pair although the other side has such a kind."""
    kinds = [{kind_of(one.op_type) for one in side} for side in sides]
    left: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
    for step in comparison.steps:
        for counts, operators, others in ((left[0], step.only_mine, kinds[1]), (left[1], step.only_golden, kinds[0])):
            counts.update(
                one.op_type for one in operators if kind_of(one.op_type) in others and not is_mover(one.op_type)
            )
    return left


def tried(name: str, exporter: str) -> list[str]:
    """A row of the table for a model and an exporter, and what was not as it should be."""
    net, inputs = built(name)
    with tempfile.TemporaryDirectory() as folder:
        paths = {side: Path(folder) / side for side in ("torch", "onnx")}
        dump_of_torch(net, inputs, paths["torch"])
        dump_of_onnx(exported(net, inputs, EXPORTERS[exporter]), inputs, paths["onnx"])
        sides = {side: computing(path) for side, path in paths.items()}
        cells, remarks = [], []
        for mine, golden in (("torch", "onnx"), ("onnx", "torch")):
            started = time.perf_counter()
            comparison = msdump.compare(paths[mine], paths[golden])
            taken = time.perf_counter() - started
            kinds = [{kind_of(one.op_type) for one in sides[side]} for side in (mine, golden)]
            common = [
                sum(kind_of(one.op_type) in kinds[1 - at] for one in sides[side])
                for at, side in enumerate((mine, golden))
            ]
            left = left_over(comparison, (sides[mine], sides[golden]))
            paired = sum(not is_mover(result.pair.mine.op_type) for result in comparison.operators)
            shares = [1 - sum(counts.values()) / max(1, total) for counts, total in zip(left, common, strict=True)]
            verdict = "agree" if comparison.is_agreeing else "differ"
            cells.append(
                f"{mine} as mine: {verdict}, {paired} pairs, {min(shares):.1%} of the common kinds, {taken:.1f} s"
            )
            if not comparison.is_agreeing:
                remarks += headline(comparison)
            for side, counts in zip(("mine", "golden"), left, strict=True):
                if counts:
                    remarks.append(f"left in {side}: {dict(counts)}")
        counts = f"{len(sides['torch'])} of {len(sides['onnx'])}"
    return [f"{name}, {exporter}: {counts} operators; {'; '.join(cells)}", *(f"    {remark}" for remark in remarks)]


def main(names: list[str]) -> int:
    """Print a row for each model and exporter."""
    for name in names or MODELS:
        for exporter in EXPORTERS:
            try:
                print("\n".join(tried(name, exporter)), flush=True)
            except Exception as error:  # noqa: BLE001  (whatever stops a model is what this shows)
                print(f"{name}, {exporter}: {type(error).__name__}: {str(error)[:300]}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
