"""A small network learns from a large one: soft targets, a temperature, and frozen parameters."""

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops

ms.set_seed(39)
rng = np.random.default_rng(39)
data = rng.standard_normal((64, 5)).astype(np.float32)
label = (np.argmax(data[:, :3] ** 2, axis=1)).astype(np.int32)


def train(network, loss_of, steps, rate):
    optimizer = nn.Adam(network.trainable_params(), rate)
    step = ms.value_and_grad(loss_of, None, optimizer.parameters)
    history = []
    for _ in range(steps):
        loss, grads = step(Tensor(data), Tensor(label))
        optimizer(grads)
        history.append(float(loss))
    return history


teacher = nn.SequentialCell(nn.Dense(5, 48, "he_uniform"), nn.ReLU(), nn.Dense(48, 3, "he_uniform"))
train(teacher, lambda x, y: ops.cross_entropy(teacher(x), y), 40, 0.03)
teacher.set_train(False)
for parameter in teacher.get_parameters():
    parameter.requires_grad = False
assert teacher.trainable_params() == []
frozen = teacher[0].weight.asnumpy().copy()

student = nn.SequentialCell(nn.Dense(5, 12, "he_uniform"), nn.Tanh(), nn.Dense(12, 3, "he_uniform"))
divergence = nn.KLDivLoss(reduction="batchmean")


def distill(x, y):
    of_teacher = ops.stop_gradient(ops.softmax(teacher(x) / 2.0, axis=1))
    logits = student(x)
    return divergence(ops.log_softmax(logits / 2.0, axis=1), of_teacher) * 4.0 + 0.3 * ops.cross_entropy(logits, y)


losses = train(student, distill, 30, 0.03)
assert np.array_equal(frozen, teacher[0].weight.asnumpy())
