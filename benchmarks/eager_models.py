"""Public models that train a few steps under `msdump.watch`: `python benchmarks/eager_models.py [MODEL ...] [--write]`.

Models of transformers, diffusers, torchvision, timm and torch.nn, small, with random weights. Each is trained from one
seed: plain, watched, and compiled with the backend msdump. Losses and gradients of the first two must have the same
bits; the dumps of the last two are compared operator by operator. Then each is trained twice while statistics are
dumped, by the compiled observer and by a dispatch mode, and both again with a part of the model compiled: the bits of
the training must stay, and the rows of both are compared. `--write` puts the table into docs/torch-eager.md.

Needs `pip install transformers diffusers torchvision timm scipy` and msdump-native beside PyTorch; a model whose
package is missing is reported and left out.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import msdump  # noqa: E402  (found through the line before)
from msdump.config.environment import NATIVE  # noqa: E402
from tests.frontends.torch.eager.native_rows import operators_alike  # noqa: E402

DOCS = ROOT / "docs" / "torch-eager.md"
BEGIN, END = "<!-- models: begin -->\n", "<!-- models: end -->\n"
HEADER = (
    "| model | parameters | steps | tensors | of the forward pass: in both forms | identical | agree | differ "
    "| of all: goes wrong by itself | seen alike by the compiled observer | with a compiled part |\n"
    f"{'|---' * 11}|\n"
)
# Steps whose statistics are dumped: the compiled observer knows from the second iteration on what runs.
STEPS = 3
PART_BACKEND = "aot_eager"

# A training step: the model, and what computes its loss.
Program = tuple[nn.Module, Callable[[nn.Module], torch.Tensor]]


@dataclass(frozen=True)
class Row:
    """What one model gave.

    is_equal                  losses and gradients of all trainings have the bits of the one without a dump
    tensors                   files of the watched run's dump
    shared, only_eager        operators of the forward pass that both dumps have, and that only the eager one has
    identical, agree, differ  tensors of the shared ones
    wrong                     operators of all parts whose inputs agree and whose output does not
    seen_alike, seen          operators with the same rows of the compiled observer and of a dispatch mode; all
    partly_alike, partly      the same where a part of the model is compiled
    """

    name: str
    parameters: int
    is_equal: bool
    tensors: int
    shared: int
    only_eager: int
    identical: int
    agree: int
    differ: int
    wrong: int
    seen_alike: int
    seen: int
    partly_alike: int
    partly: int

    def line(self) -> str:
        steps = "the same bits" if self.is_equal else "**other bits**"
        operators = f"{self.shared} of {self.shared + self.only_eager} operators"
        return (
            f"| {self.name} | {self.parameters:,} | {steps} | {self.tensors:,} | {operators} "
            f"| {self.identical:,} | {self.agree:,} | {self.differ:,} | {self.wrong:,} "
            f"| {self.seen_alike:,} of {self.seen:,} | {self.partly_alike:,} of {self.partly:,} |\n"
        )


def _of_transformers(model: str, config: str, kind: str, **sizes: Any) -> Callable[[], Program]:
    def build() -> Program:
        transformers = importlib.import_module("transformers")
        return _with_inputs(getattr(transformers, model)(getattr(transformers, config)(**sizes)), kind)

    return build


def _with_inputs(model: nn.Module, kind: str) -> Program:
    ids = torch.randint(3, 60, (2, 12))
    pixels = torch.randn(2, 3, 32, 32)
    inputs = {
        "causal": {"input_ids": ids, "labels": ids},
        "sequence": {"input_ids": ids, "decoder_input_ids": ids, "labels": ids},
        "image": {"pixel_values": pixels, "labels": torch.tensor([0, 1])},
        "clip": {"input_ids": ids, "pixel_values": pixels, "return_loss": True},
        "speech": {"input_features": torch.randn(2, 8, 20), "decoder_input_ids": ids, "labels": ids},
        "segments": {"pixel_values": torch.randn(2, 3, 64, 64), "labels": torch.randint(0, 3, (2, 64, 64))},
        "boxes": {
            "pixel_values": torch.randn(1, 3, 32, 32),
            "labels": [{"class_labels": torch.tensor([1, 0]), "boxes": torch.rand(2, 4) * 0.5 + 0.2}],
        },
    }[kind]
    return model, lambda called: called(**inputs).loss


def _lstm() -> Program:
    class Tagger(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding, self.lstm = nn.Embedding(40, 16), nn.LSTM(16, 12, 2, batch_first=True, bidirectional=True)
            self.head = nn.Linear(24, 5)

        def forward(self, words: torch.Tensor) -> torch.Tensor:
            return self.head(self.lstm(self.embedding(words))[0])

    words, tags = torch.randint(0, 40, (3, 9)), torch.randint(0, 5, (27,))
    return Tagger(), lambda called: nn.functional.cross_entropy(called(words).reshape(27, 5), tags)


def _transformer() -> Program:
    source, target = torch.randn(3, 7, 16), torch.randn(3, 5, 16)
    model = nn.Transformer(16, 2, 2, 2, 32, batch_first=True)
    return model, lambda called: called(source, target).square().mean()


def _unet() -> Program:
    diffusers = importlib.import_module("diffusers")
    model = diffusers.UNet2DModel(
        sample_size=16,
        block_out_channels=(8, 16),
        down_block_types=("DownBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "UpBlock2D"),
        layers_per_block=1,
        norm_num_groups=4,
        attention_head_dim=4,
    )
    images, times = torch.randn(2, 3, 16, 16), torch.tensor([3, 500])
    return model, lambda called: nn.functional.mse_loss(called(images, times).sample, images)


def _efficientnet() -> Program:
    parts = importlib.import_module("torchvision.models.efficientnet")
    blocks = [parts.MBConvConfig(1, 3, 1, 8, 8, 1), parts.MBConvConfig(4, 3, 2, 8, 16, 2)]
    return _classifier(parts.EfficientNet(blocks, 0.2, num_classes=5))


def _densenet() -> Program:
    models = importlib.import_module("torchvision.models")
    return _classifier(models.DenseNet(8, (2, 2), 16, num_classes=5))


def _shufflenet() -> Program:
    models = importlib.import_module("torchvision.models")
    return _classifier(models.ShuffleNetV2([2, 2, 2], [8, 16, 24, 32, 32], num_classes=5))


def _retinanet() -> Program:
    detection = importlib.import_module("torchvision.models.detection")
    anchors = importlib.import_module("torchvision.models.detection.anchor_utils")
    backbone = nn.Sequential(nn.Conv2d(3, 16, 3, 4, 1), nn.ReLU())
    backbone.out_channels = 16  # type: ignore[assignment]
    sizes = anchors.AnchorGenerator(((16, 32),), ((0.5, 1.0),))
    model = detection.RetinaNet(backbone, 3, min_size=32, max_size=32, anchor_generator=sizes)
    images = [torch.rand(3, 32, 32) for _ in range(2)]
    targets = [
        {"boxes": torch.tensor([[2.0, 2.0, 18.0, 22.0]]), "labels": torch.tensor([1])},
        {"boxes": torch.tensor([[8.0, 4.0, 30.0, 28.0]]), "labels": torch.tensor([2])},
    ]
    return model, lambda called: sum(called(images, targets).values())


def _mixer() -> Program:
    timm = importlib.import_module("timm.models.mlp_mixer")
    return _classifier(timm.MlpMixer(num_classes=5, img_size=32, patch_size=8, num_blocks=2, embed_dim=32))


def _xcit() -> Program:
    timm = importlib.import_module("timm.models.xcit")
    return _classifier(timm.Xcit(img_size=32, patch_size=8, num_classes=5, embed_dim=32, depth=2, num_heads=2))


def _classifier(model: nn.Module) -> Program:
    images, kinds = torch.randn(2, 3, 32, 32), torch.tensor([0, 3])
    return model, lambda called: nn.functional.cross_entropy(called(images), kinds)


_TEXT = {
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 64,
}
_GROUPED = {**_TEXT, "num_key_value_heads": 2, "pad_token_id": 0}
_IMAGE = {
    "image_size": 32,
    "patch_size": 8,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
}
_EXPERTS = {"num_experts_per_tok": 2}

MODELS: dict[str, Callable[[], Program]] = {
    "Llama": _of_transformers("LlamaForCausalLM", "LlamaConfig", "causal", **_GROUPED),
    "Qwen2": _of_transformers("Qwen2ForCausalLM", "Qwen2Config", "causal", **_GROUPED),
    "Qwen3": _of_transformers("Qwen3ForCausalLM", "Qwen3Config", "causal", **_GROUPED, head_dim=8),
    "Mixtral": _of_transformers(
        "MixtralForCausalLM", "MixtralConfig", "causal", **_GROUPED, **_EXPERTS, num_local_experts=4
    ),
    "Gemma": _of_transformers("GemmaForCausalLM", "GemmaConfig", "causal", **_GROUPED, head_dim=8),
    "GPT-2": _of_transformers(
        "GPT2LMHeadModel", "GPT2Config", "causal", vocab_size=64, n_positions=64, n_embd=32, n_layer=2, n_head=4
    ),
    "Mamba": _of_transformers(
        "MambaForCausalLM", "MambaConfig", "causal", vocab_size=64, hidden_size=32, state_size=8, num_hidden_layers=2
    ),
    "BERT": _of_transformers("BertForMaskedLM", "BertConfig", "causal", **_TEXT),
    "T5": _of_transformers(
        "T5ForConditionalGeneration",
        "T5Config",
        "sequence",
        vocab_size=64,
        d_model=32,
        d_kv=8,
        d_ff=48,
        num_layers=2,
        num_heads=4,
    ),
    "BART": _of_transformers(
        "BartForConditionalGeneration",
        "BartConfig",
        "sequence",
        vocab_size=64,
        d_model=32,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=48,
        decoder_ffn_dim=48,
        max_position_embeddings=64,
    ),
    "Whisper": _of_transformers(
        "WhisperForConditionalGeneration",
        "WhisperConfig",
        "speech",
        vocab_size=64,
        num_mel_bins=8,
        d_model=32,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=48,
        decoder_ffn_dim=48,
        max_source_positions=10,
        max_target_positions=64,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=1,
        apply_spec_augment=False,
    ),
    "ViT": _of_transformers("ViTForImageClassification", "ViTConfig", "image", **_IMAGE),
    "CLIP": _of_transformers(
        "CLIPModel",
        "CLIPConfig",
        "clip",
        text_config={**_TEXT, "eos_token_id": 2, "bos_token_id": 1, "pad_token_id": 0},
        vision_config=_IMAGE,
        projection_dim=16,
    ),
    "Swin": _of_transformers(
        "SwinForImageClassification",
        "SwinConfig",
        "image",
        image_size=32,
        patch_size=4,
        embed_dim=16,
        depths=[1, 1],
        num_heads=[2, 4],
        window_size=4,
    ),
    "ResNet": _of_transformers(
        "ResNetForImageClassification",
        "ResNetConfig",
        "image",
        embedding_size=8,
        hidden_sizes=[16, 32],
        depths=[1, 2],
        layer_type="bottleneck",
    ),
    "MobileNetV2": _of_transformers(
        "MobileNetV2ForImageClassification", "MobileNetV2Config", "image", depth_multiplier=0.25, image_size=32
    ),
    "ConvNeXt": _of_transformers(
        "ConvNextForImageClassification",
        "ConvNextConfig",
        "image",
        hidden_sizes=[8, 16, 24, 32],
        depths=[1, 1, 1, 1],
        image_size=32,
    ),
    "SegFormer": _of_transformers(
        "SegformerForSemanticSegmentation",
        "SegformerConfig",
        "segments",
        num_encoder_blocks=2,
        depths=[1, 1],
        sr_ratios=[2, 1],
        hidden_sizes=[16, 32],
        num_attention_heads=[2, 4],
        patch_sizes=[7, 3],
        strides=[4, 2],
        mlp_ratios=[2, 2],
        decoder_hidden_size=16,
        num_labels=3,
    ),
    "YOLOS (detection)": _of_transformers(
        "YolosForObjectDetection",
        "YolosConfig",
        "boxes",
        **{**_IMAGE, "image_size": [32, 32]},
        num_detection_tokens=5,
        num_labels=3,
    ),
    "LSTM": _lstm,
    "nn.Transformer": _transformer,
    "UNet2D (diffusion)": _unet,
    "EfficientNet": _efficientnet,
    "DenseNet": _densenet,
    "ShuffleNetV2": _shufflenet,
    "RetinaNet (detection)": _retinanet,
    "MLP-Mixer": _mixer,
    "XCiT": _xcit,
}


def _train(
    build: Callable[[], Program],
    compile_with: str | None = None,
    watch_with: Path | None = None,
    count: int = 2,
    compile_part_with: str | None = None,
) -> tuple[list[bytes], int]:
    """Bits of the losses and gradients of some steps, and the number of parameters."""
    torch.manual_seed(0)
    model, loss_of = build()
    model.train()
    if compile_part_with is not None:
        part = _part(model)
        # Its parameters keep their names.
        part.forward = torch.compile(part.forward, backend=compile_part_with)  # type: ignore[method-assign]
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    bits: list[bytes] = []

    def steps() -> None:
        called = model if compile_with is None else torch.compile(model, backend=compile_with)
        for _ in range(count):
            optimizer.zero_grad()
            loss = loss_of(called)
            loss.backward()
            bits.append(loss.detach().numpy().tobytes())
            bits.extend(
                parameter.grad.numpy().tobytes() for parameter in model.parameters() if parameter.grad is not None
            )
            optimizer.step()

    if watch_with is None:
        steps()
    else:
        with msdump.watch(model, watch_with) as watch:
            steps()
        report = watch.report()
        assert report is not None and not report.failure, report
        said = " ".join((*report.outside, *report.notes))
        if os.environ.get(NATIVE) == "1" and compile_part_with is None:
            assert f"operators of {count} iterations were seen by msdump-native" in said, said
        assert compile_part_with is None or "compiled by torch.compile" in said, said
    return bits, sum(parameter.numel() for parameter in model.parameters())


def _part(model: nn.Module) -> nn.Module:
    """The first block of a model, else the first of its modules with parameters."""
    lists = [each for each in model.modules() if isinstance(each, nn.ModuleList | nn.Sequential)]
    modules = [module for each in lists for module in each if not isinstance(module, nn.ModuleList)]
    return next(each for each in [*modules, *model.children()] if any(True for _ in each.parameters()))


def _configuration(folder: Path, **settings: Any) -> Path:
    file = folder.with_suffix(".json")
    common = {
        "dump_mode": 0,
        "path": os.fspath(folder),
        "net_name": "Net",
        "iteration": "all",
        "saved_data": "tensor",
        "input_output": 0,
        "kernels": [],
        "support_device": [0],
        **settings,
    }
    file.write_text(
        json.dumps({"common_dump_settings": common, "e2e_dump_settings": {"enable": True, "trans_flag": True}})
    )
    return file


def _seen_by_both(
    build: Callable[[], Program], folder: Path, compile_part_with: str | None = None
) -> tuple[list[list[bytes]], int, int]:
    """Bits of trainings whose statistics are dumped by the compiled observer, and by a dispatch mode; how many
    operators have the same rows of both; how many there are."""
    bits = []
    dumps = folder / "native", folder / "mode"
    for path, is_native in zip(dumps, ("1", "0"), strict=True):
        path.parent.mkdir(exist_ok=True)
        os.environ[NATIVE] = is_native
        file = _configuration(path, saved_data="statistic", statistic_category=["max", "min", "avg", "l2norm"])
        bits.append(_train(build, watch_with=file, count=STEPS, compile_part_with=compile_part_with)[0])
        torch._dynamo.reset()
    del os.environ[NATIVE]
    found = operators_alike(*dumps)
    return bits, sum(found.values()), len(found)


def measure(name: str) -> Row:
    """Train one model in all ways, in this process, and compare what came out."""
    build = MODELS[name]
    # Else PyTorch compiles nothing of a model with an LSTM.
    torch._dynamo.config.allow_rnn = True
    with tempfile.TemporaryDirectory(dir="/dev/shm") as text:
        eager, compiled = Path(text, "eager"), Path(text, "compiled")
        plain, parameters = _train(build, count=STEPS)
        watched, _ = _train(build, watch_with=_configuration(eager))
        with msdump.dump(_configuration(compiled)):
            _train(build, compile_with="msdump")
        torch._dynamo.reset()
        partly_plain, _ = _train(build, count=STEPS, compile_part_with=PART_BACKEND)
        torch._dynamo.reset()
        seen, *seen_counts = _seen_by_both(build, Path(text, "seen"))
        partly, *partly_counts = _seen_by_both(build, Path(text, "partly"), PART_BACKEND)
        is_equal = watched == plain[: len(watched)] and seen == [plain] * 2 and partly == [partly_plain] * 2
        found = msdump.compare(eager, compiled, has_divergence=False)
        forward = [step for step in found.steps if step.mine.graph_id == 0]
        statuses = [tensor.status for step in forward for operator in step.operators for tensor in operator.tensors]
        return Row(
            name,
            parameters,
            is_equal,
            sum(1 for _ in eager.rglob("*.npy")),
            sum(len(step.operators) for step in forward),
            sum(len(step.only_mine) for step in forward),
            *(statuses.count(status) for status in ("identical", "agrees", "differs")),
            sum(operator.is_wrong for operator in found.operators),
            *seen_counts,
            *partly_counts,
        )


def _in_a_process(name: str) -> Row | None:
    command = [sys.executable, os.path.abspath(__file__), name, "--one"]
    done = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "TRANSFORMERS_VERBOSITY": "error"}
    )
    if done.returncode:
        print(f"{name}: {done.stderr.strip().splitlines()[-1]}", file=sys.stderr, flush=True)
        return None
    return Row(**json.loads(done.stdout.splitlines()[-1]))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("models", nargs="*", choices=[*MODELS, []], metavar="MODEL", help=", ".join(MODELS))
    parser.add_argument("--write", action="store_true", help="put the table into docs/torch-eager.md")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        print(json.dumps(asdict(measure(args.models[0]))))
        return 0
    print(HEADER, end="", flush=True)
    lines = []
    names = args.models or list(MODELS)
    for name in names:
        row = _in_a_process(name)
        if row is not None:
            lines.append(row.line())
            print(lines[-1], end="", flush=True)
    if args.write:
        before, _, rest = DOCS.read_text(encoding="utf-8").partition(BEGIN)
        after = rest.partition(END)[2]
        DOCS.write_text(before + BEGIN + HEADER + "".join(lines) + END + after, encoding="utf-8")
    return 0 if len(lines) == len(names) else 1


if __name__ == "__main__":
    sys.exit(main())
