"""Train a small network in float16 until its gradients overflow through the loss scale.

    msdump run --config overflow_dump.json overflow.py

This is an ordinary MindSpore script: it knows nothing of dumps. The pictures are the digits of scikit-learn,
8 x 8 pixels each. The loss is multiplied by a scale so that small gradients survive in float16. When the scale is too
large, gradients become Inf: the step changes no weight, and the scale is halved.
"""

import argparse

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn
from mindspore.common.initializer import Normal
from sklearn.datasets import load_digits


def parse_arguments(argv=None):
    parser = argparse.ArgumentParser(description="Train in float16 with a loss scale that is too large at first.")
    parser.add_argument(
        "--device_target", default="CPU", choices=["CPU", "GPU", "Ascend"], help="the device, default CPU"
    )
    parser.add_argument("--steps", type=int, default=20, help="training steps, default 20")
    parser.add_argument("--batch_size", type=int, default=32, help="pictures in a step, default 32")
    parser.add_argument("--loss_scale", type=float, default=2.0**21, help="loss scale of the first step, default 2^21")
    parser.add_argument("--lr", type=float, default=0.1, help="learning rate, default 0.1")
    return parser.parse_args(argv)


def create_dataset(batch_size, steps):
    """Batches of pictures (N, 1, 8, 8) float32 from 0 to 1 and labels (N,) int32."""
    pictures, labels = load_digits(return_X_y=True)
    pictures = (pictures.reshape(-1, 1, 8, 8) / 16).astype(np.float32)
    data = ds.NumpySlicesDataset((pictures, labels.astype(np.int32)), ["image", "label"], shuffle=False)
    data = data.batch(batch_size, drop_remainder=True)
    return data.repeat(-(-steps // data.get_dataset_size())).take(steps)


class Net(nn.Cell):
    """Two convolutions and two dense layers."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, pad_mode="same", weight_init=Normal(0.3))
        self.conv2 = nn.Conv2d(8, 16, 3, pad_mode="same", weight_init=Normal(0.1))
        self.pool = nn.MaxPool2d(kernel_size=2, stride=2)
        self.relu = nn.ReLU()
        self.flatten = nn.Flatten()
        self.fc1 = nn.Dense(16 * 4 * 4, 32, weight_init=Normal(0.06))
        self.fc2 = nn.Dense(32, 10, weight_init=Normal(0.2))

    def construct(self, x):
        """Scores (N, 10) of pictures (N, 1, 8, 8)."""
        x = self.relu(self.conv1(x))
        x = self.pool(self.relu(self.conv2(x)))
        x = self.relu(self.fc1(self.flatten(x)))
        return self.fc2(x)


class LossIn32(nn.Cell):
    """Loss of float16 scores, computed in float32."""

    def __init__(self):
        super().__init__()
        self.loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")

    def construct(self, scores, label):
        """Mean loss of scores (N, classes) for labels (N,)."""
        return self.loss(ms.ops.cast(scores, ms.float32), label)


def main():
    args = parse_arguments()
    ms.set_seed(1)
    ms.set_context(mode=ms.GRAPH_MODE, device_target=args.device_target)
    network = Net().to_float(ms.float16)
    optimizer = nn.Momentum(network.trainable_params(), learning_rate=args.lr, momentum=0.9)
    scale = nn.DynamicLossScaleUpdateCell(loss_scale_value=args.loss_scale, scale_factor=2, scale_window=1000)
    train_net = nn.TrainOneStepWithLossScaleCell(nn.WithLossCell(network, LossIn32()), optimizer, scale)
    train_net.set_train()
    batches = create_dataset(args.batch_size, args.steps)
    for step, inputs in enumerate(batches, start=1):
        loss, overflow, used = train_net(*inputs)
        shown = "yes, step skipped" if bool(overflow.asnumpy()) else "no"
        print(f"step: {step}, loss: {float(loss.asnumpy()):.4f}, scale: {float(used.asnumpy()):.0f}, overflow: {shown}")


if __name__ == "__main__":
    main()
