"""Train AlexNet on CIFAR-10 pictures for a few steps. This is an ordinary MindSpore script: it knows nothing of dumps.

    msdump run --config data_dump.json train_alexnet.py --steps 3

The pictures come from --data_path: a folder with the .bin files of the CIFAR-10 binary version. Without it, the script
looks into ./datasets; when there are none, msdump writes the handwritten digits of scikit-learn there, in that form.
"""

import argparse
import math
import sys
from pathlib import Path

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn
from mindspore.common.initializer import TruncatedNormal
from mindspore.dataset import transforms, vision

CIFAR10_FOLDERS = ("datasets/cifar10/train", "datasets/cifar10", "datasets/cifar-10-binary/cifar-10-batches-bin")
DIGITS_FOLDER = "datasets/digits"


def parse_arguments(argv=None):
    parser = argparse.ArgumentParser(description="Train AlexNet for a few steps.")
    parser.add_argument(
        "--device_target", default="CPU", choices=["CPU", "GPU", "Ascend"], help="the device, default CPU"
    )
    parser.add_argument("--device_id", type=int, default=0, help="number of the device, default 0")
    parser.add_argument("--data_path", help="folder with the .bin files of the CIFAR-10 binary version")
    parser.add_argument("--steps", type=int, default=5, help="training steps, default 5")
    parser.add_argument("--batch_size", type=int, default=8, help="pictures in a step, default 8")
    parser.add_argument(
        "--num_samples",
        type=int,
        help="train on the first so many pictures, 0 for all; default one batch, so that the loss falls at once",
    )
    parser.add_argument("--lr", type=float, default=0.005, help="learning rate, default 0.005")
    parser.add_argument("--seed", type=int, default=1, help="seed of weights and pictures, default 1")
    return parser.parse_args(argv)


def find_pictures(data_path=None):
    """Folder of CIFAR-10 binary files: the given one, an existing one, or one made of digits."""
    if data_path is not None:
        return data_path
    for folder in CIFAR10_FOLDERS:
        if any(Path(folder).glob("data_batch*.bin")):
            return folder
    try:
        from msdump.mindspore.dataset.digits import write_digits_as_cifar10
    except ImportError:
        sys.exit(f"expected data_batch_1.bin ... in {CIFAR10_FOLDERS[0]}, got none. Give --data_path.")
    return str(write_digits_as_cifar10(DIGITS_FOLDER))


def create_dataset_cifar10(data_path, batch_size=32, num_samples=0, repeat_size=1):
    """Batches of pictures (N, 3, 227, 227) float32 and labels (N,) int32."""
    pictures = ds.Cifar10Dataset(data_path, usage="train", shuffle=num_samples == 0)
    if num_samples:
        pictures = pictures.take(num_samples)
    pictures = pictures.map(operations=transforms.TypeCast(ms.int32), input_columns="label")
    for operation in (
        vision.RandomCrop([32, 32], [4, 4, 4, 4]),
        vision.RandomHorizontalFlip(),
        vision.Resize(size=(227, 227)),
        vision.Rescale(1.0 / 255.0, 0.0),
        vision.Normalize((0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)),
        vision.HWC2CHW(),
    ):
        pictures = pictures.map(operations=operation, input_columns="image")
    pictures = pictures.shuffle(buffer_size=1000)
    return pictures.batch(batch_size, drop_remainder=True).repeat(repeat_size)


def conv(in_channels, out_channels, kernel_size, stride=1, padding=0, pad_mode="valid"):
    weight = weight_variable()
    return nn.Conv2d(
        in_channels,
        out_channels,
        kernel_size=kernel_size,
        stride=stride,
        padding=padding,
        weight_init=weight,
        has_bias=False,
        pad_mode=pad_mode,
    )


def fc_with_initialize(input_channels, out_channels):
    weight = weight_variable()
    bias = weight_variable()
    return nn.Dense(input_channels, out_channels, weight, bias)


def weight_variable():
    return TruncatedNormal(0.02)


class AlexNet(nn.Cell):
    """AlexNet for pictures of 227 x 227 pixels."""

    def __init__(self, num_classes=10, channel=3):
        super().__init__()
        self.conv1 = conv(channel, 96, 11, stride=4)
        self.conv2 = conv(96, 256, 5, pad_mode="same")
        self.conv3 = conv(256, 384, 3, pad_mode="same")
        self.conv4 = conv(384, 384, 3, pad_mode="same")
        self.conv5 = conv(384, 256, 3, pad_mode="same")
        self.relu = nn.ReLU()
        self.max_pool2d = nn.MaxPool2d(kernel_size=3, stride=2)
        self.flatten = nn.Flatten()
        self.fc1 = fc_with_initialize(6 * 6 * 256, 4096)
        self.fc2 = fc_with_initialize(4096, 4096)
        self.fc3 = fc_with_initialize(4096, num_classes)

    def construct(self, x):
        """Scores (N, num_classes) of pictures (N, channel, 227, 227)."""
        x = self.conv1(x)
        x = self.relu(x)
        x = self.max_pool2d(x)
        x = self.conv2(x)
        x = self.relu(x)
        x = self.max_pool2d(x)
        x = self.conv3(x)
        x = self.relu(x)
        x = self.conv4(x)
        x = self.relu(x)
        x = self.conv5(x)
        x = self.relu(x)
        x = self.max_pool2d(x)
        x = self.flatten(x)
        x = self.fc1(x)
        x = self.relu(x)
        x = self.fc2(x)
        x = self.relu(x)
        x = self.fc3(x)
        return x  # noqa: RET504 - one line for each layer


def get_lr(current_step, lr_max, total_epochs, steps_per_epoch):
    """One learning rate for each step from `current_step` on; the last fifth of the steps takes a tenth."""
    total_steps = total_epochs * steps_per_epoch
    is_late = np.arange(total_steps) >= 0.8 * total_steps
    return np.where(is_late, lr_max * 0.1, lr_max).astype(np.float32)[current_step:]


def train(ds_train, steps, lr_max):
    """Train for `steps` steps and print the loss of each."""
    network = AlexNet(num_classes=10)
    net_loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    net_with_loss = nn.WithLossCell(network, net_loss)
    lr = ms.Tensor(get_lr(0, lr_max, 1, steps))
    net_opt = nn.Momentum(net_with_loss.trainable_params(), learning_rate=lr, momentum=0.9)
    train_net = nn.TrainOneStepCell(net_with_loss, net_opt)
    train_net.set_train()

    for step, inputs in enumerate(ds_train, start=1):
        output = train_net(*inputs)
        print(f"step: {step}, losses: {output.asnumpy()}", flush=True)
        if step == steps:
            break


def main():
    args = parse_arguments()
    ms.set_seed(args.seed)
    ms.set_context(mode=ms.GRAPH_MODE, device_target=args.device_target, device_id=args.device_id)
    num_samples = args.batch_size if args.num_samples is None else args.num_samples
    data_path = find_pictures(args.data_path)
    steps_per_epoch = create_dataset_cifar10(data_path, args.batch_size, num_samples).get_dataset_size()
    if steps_per_epoch == 0:
        sys.exit(f"expected at least one batch of {args.batch_size} pictures. Make --num_samples larger.")
    repeat_size = math.ceil(args.steps / steps_per_epoch)
    train(create_dataset_cifar10(data_path, args.batch_size, num_samples, repeat_size), args.steps, args.lr)


if __name__ == "__main__":
    main()
