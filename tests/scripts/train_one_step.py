"""A training step of one's own: a subclass of TrainOneStepCell that clips gradients, with a decaying rate."""

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops

ms.set_context(mode=ms.GRAPH_MODE)
ms.set_seed(31)


class ClippedStep(nn.TrainOneStepCell):
    def __init__(self, network, optimizer, limit, sens=1.0):
        super().__init__(network, optimizer, sens)
        self.limit = limit

    def construct(self, *inputs):
        loss = self.network(*inputs)
        sens = ops.fill(loss.dtype, loss.shape, self.sens)
        grads = self.grad(self.network, self.weights)(*inputs, sens)
        grads = ops.clip_by_global_norm(grads, self.limit)
        grads = self.grad_reducer(grads)
        return ops.depend(loss, self.optimizer(grads))


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.layers = nn.SequentialCell([nn.Dense(5, 16, "he_uniform"), nn.ReLU(), nn.Dense(16, 1, "he_uniform")])

    def construct(self, x):
        return self.layers(x)


rng = np.random.default_rng(31)
data = Tensor(rng.standard_normal((32, 5)).astype(np.float32))
target = Tensor((3 * data.asnumpy()[:, :1] - data.asnumpy()[:, 1:2]).astype(np.float32))
network = Net()
rate = nn.ExponentialDecayLR(0.1, 0.9, decay_steps=10, is_stair=False)
optimizer = nn.Momentum(network.trainable_params(), rate, momentum=0.9)
step = ClippedStep(nn.WithLossCell(network, nn.MSELoss()), optimizer, limit=1.0)
step.set_train()
losses = [float(step(data, target)) for _ in range(20)]
