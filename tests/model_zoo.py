"""How many families of mindcv train a step here: `pip install --no-deps mindcv pyyaml tqdm; python -m tests.model_zoo`.

Each family is its smallest model, two random images and one step of SGD in PyNative mode. Names on the command line
choose families.
"""

from __future__ import annotations

import importlib
import sys
import time
from typing import Any

import numpy as np

import msdump

# Family -> (model, side of the images).
MODELS = {
    "bit": ("BiT_resnet50", 64), "cmt": ("cmt_tiny", 160), "coat": ("coat_lite_tiny", 224),
    "convit": ("convit_tiny", 224), "convnext": ("convnext_tiny", 64), "crossvit": ("crossvit_9", 240),
    "densenet": ("densenet121", 64), "dpn": ("dpn92", 64), "edgenext": ("edgenext_xx_small", 64),
    "efficientnet": ("efficientnet_b0", 64), "ghostnet": ("ghostnet_050", 64), "googlenet": ("googlenet", 224),
    "hrnet": ("hrnet_w32", 64), "inceptionv3": ("inception_v3", 299), "mixnet": ("mixnet_s", 64),
    "mlpmixer": ("mlp_mixer_s_p32", 224), "mnasnet": ("mnasnet_050", 64), "mobilenetv1": ("mobilenet_v1_025", 64),
    "mobilenetv2": ("mobilenet_v2_035_128", 64), "mobilenetv3": ("mobilenet_v3_small_100", 64),
    "mobilevit": ("mobilevit_xx_small", 64), "pit": ("pit_ti", 224), "poolformer": ("poolformer_s12", 64),
    "pvt": ("pvt_tiny", 224), "pvtv2": ("pvt_v2_b0", 64), "regnet": ("regnet_x_200mf", 64),
    "repvgg": ("repvgg_a0", 64), "res2net": ("res2net50", 64), "resnest": ("resnest50", 64),
    "resnet": ("resnet18", 64), "rexnet": ("rexnet_09", 64), "senet": ("seresnet18", 64),
    "shufflenetv1": ("shufflenet_v1_g3_05", 64), "shufflenetv2": ("shufflenet_v2_x0_5", 64),
    "sknet": ("skresnet18", 64), "squeezenet": ("squeezenet1_0", 64), "swintransformer": ("swin_tiny", 224),
    "vgg": ("vgg11", 224), "visformer": ("visformer_tiny", 224), "vit": ("vit_b_32_224", 224),
    "volo": ("volo_d1", 224), "xception": ("xception", 96), "xcit": ("xcit_tiny_12_p16_224", 224),
}  # fmt: skip


def loss_of_a_step(name: str, side: int) -> float:
    """Train a model of mindcv for one step."""
    import mindspore as ms
    from mindspore import nn

    network = importlib.import_module("mindcv").create_model(name, num_classes=10)
    entropy = nn.CrossEntropyLoss()

    class WithLoss(nn.Cell):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.network = network

        def construct(self, images: Any, labels: Any) -> Any:
            logits = self.network(images)
            return entropy(logits[0] if isinstance(logits, tuple) else logits, labels)

    step = nn.TrainOneStepCell(WithLoss(), nn.SGD(network.trainable_params(), 1e-3))
    step.set_train()
    images = np.random.default_rng(0).standard_normal((2, 3, side, side)).astype(np.float32)
    return float(step(ms.Tensor(images), ms.Tensor(np.array([1, 2], np.int32))))


def main(families: list[str]) -> int:
    """Print a line for each family, and how many trained."""
    msdump.install_aliases()
    trained = 0
    for family in families or MODELS:
        name, side = MODELS[family]
        started = time.perf_counter()
        try:
            loss = loss_of_a_step(name, side)
        except Exception as error:  # noqa: BLE001  (whatever stops a model is what this shows)
            print(f"{family}: {type(error).__name__}: {str(error).partition(chr(10))[0][:160]}", flush=True)
            continue
        trained += 1
        print(f"{family}: loss {loss:.3f}, {time.perf_counter() - started:.0f} s", flush=True)
    print(f"{trained} of {len(families or MODELS)} train a step")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
