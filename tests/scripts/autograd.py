"""Gradients by hand: grad, value_and_grad with auxiliary results, stop_gradient, and a descent on them."""

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, ops

ms.set_seed(3)
rng = np.random.default_rng(3)
x = Tensor(rng.standard_normal((16, 4)).astype(np.float32))
goal = Tensor((x.asnumpy() @ np.array([[1.0], [-2.0], [0.5], [3.0]], np.float32)) + 0.25)
weight = Parameter(Tensor(np.zeros((4, 1), np.float32)), name="weight")
offset = Parameter(Tensor(np.zeros((1,), np.float32)), name="offset")


def forward(inputs, target):
    predicted = ops.matmul(inputs, weight) + offset
    return ops.mean(ops.square(predicted - target)), ops.stop_gradient(predicted)


step = ms.value_and_grad(forward, None, [weight, offset], has_aux=True)
losses = []
for _ in range(12):
    (loss, _), (of_weight, of_offset) = step(x, goal)
    weight.set_data(weight - 0.2 * of_weight)
    offset.set_data(offset - 0.2 * of_offset)
    losses.append(float(loss))

of_input = ms.grad(lambda value: ops.sum(ops.square(value)))(x)
assert np.allclose(of_input.asnumpy(), 2 * x.asnumpy())
second = ms.grad(lambda value: ms.grad(lambda inner: inner * inner * inner)(value))(Tensor(2.0))
assert abs(float(second) - 12.0) < 1e-5
