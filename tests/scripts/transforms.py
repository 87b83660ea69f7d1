"""Images through the transforms of a training pipeline: augment, normalize, batch, and a small network on them."""

import mindspore as ms
import mindspore.dataset as ds
import mindspore.dataset.transforms as transforms
import mindspore.dataset.vision as vision
import numpy as np
from mindspore import nn

ms.set_seed(4)
ds.config.set_seed(4)
rng = np.random.default_rng(4)
images = rng.integers(0, 256, (48, 12, 12, 3)).astype(np.uint8)
labels = rng.integers(0, 3, 48).astype(np.int32)
images[labels == 1, :, :6] //= 4
images[labels == 2, :6, :] //= 4

pipeline = ds.NumpySlicesDataset((images, labels), ["image", "label"], shuffle=False)
pipeline = pipeline.map(
    [
        vision.Resize((10, 10)),
        vision.CenterCrop(8),
        vision.Rescale(1.0 / 255.0, 0.0),
        vision.Normalize(mean=(0.5, 0.5, 0.5), std=(0.25, 0.25, 0.25)),
        vision.HWC2CHW(),
    ],
    input_columns="image",
)
pipeline = pipeline.map(transforms.TypeCast(ms.int32), input_columns="label").batch(16, drop_remainder=True)
assert pipeline.get_dataset_size() == 3

network = nn.SequentialCell(nn.Conv2d(3, 8, 3, pad_mode="same"), nn.ReLU(), nn.Flatten(), nn.Dense(8 * 8 * 8, 3))
optimizer = nn.SGD(network.trainable_params(), 0.02)
loss_of = nn.CrossEntropyLoss()
step = ms.value_and_grad(lambda image, label: loss_of(network(image), label), None, optimizer.parameters)
losses = []
for _ in range(8):
    parts = []
    for image, label in pipeline.create_tuple_iterator():
        loss, grads = step(image, label)
        optimizer(grads)
        parts.append(float(loss))
    losses.append(sum(parts) / len(parts))
