"""Patches of an image as a sequence, a class token, attention blocks, and a head."""

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops
from mindspore.common.initializer import Normal, initializer

ms.set_context(mode=ms.GRAPH_MODE)
ms.set_seed(15)


class Attention(nn.Cell):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads, self.scale = heads, (dim // heads) ** -0.5
        self.qkv = nn.Dense(dim, dim * 3)
        self.out = nn.Dense(dim, dim)
        self.drop = nn.Dropout(p=0.1)
        self.softmax = nn.Softmax(axis=-1)

    def construct(self, x):
        b, n, c = x.shape
        qkv = ops.reshape(self.qkv(x), (b, n, 3, self.heads, c // self.heads))
        q, k, v = ops.unstack(ops.transpose(qkv, (2, 0, 3, 1, 4)), axis=0)
        weights = self.drop(self.softmax(ops.BatchMatMul(transpose_b=True)(q, k) * self.scale))
        return self.out(ops.reshape(ops.transpose(ops.BatchMatMul()(weights, v), (0, 2, 1, 3)), (b, n, c)))


class Block(nn.Cell):
    def __init__(self, dim, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm((dim,)), nn.LayerNorm((dim,))
        self.attention = Attention(dim, heads)
        self.mlp = nn.SequentialCell(nn.Dense(dim, dim * 2), nn.GELU(), nn.Dense(dim * 2, dim))

    def construct(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class VisionTransformer(nn.Cell):
    def __init__(self, dim=16, classes=3):
        super().__init__()
        self.patch = nn.Conv2d(3, dim, kernel_size=4, stride=4, has_bias=True)
        self.token = Parameter(initializer(Normal(0.02), (1, 1, dim)), name="cls_token")
        self.position = Parameter(initializer(Normal(0.02), (1, 17, dim)), name="pos_embedding")
        self.blocks = nn.SequentialCell([Block(dim, 4) for _ in range(2)])
        self.norm = nn.LayerNorm((dim,))
        self.head = nn.Dense(dim, classes)

    def construct(self, x):
        x = self.patch(x)
        b, c, h, w = x.shape
        x = ops.transpose(ops.reshape(x, (b, c, h * w)), (0, 2, 1))
        x = ops.concat((ops.tile(self.token, (b, 1, 1)), x), axis=1) + self.position
        return self.head(self.norm(self.blocks(x))[:, 0])


rng = np.random.default_rng(15)
labels = rng.integers(0, 3, 12).astype(np.int32)
images = 0.3 * rng.standard_normal((12, 3, 16, 16)).astype(np.float32)
images[np.arange(12), labels] += 1.0
network = VisionTransformer()
loss = nn.CrossEntropyLoss(label_smoothing=0.1)
optimizer = nn.Adam(network.trainable_params(), 0.01)
step = nn.TrainOneStepCell(nn.WithLossCell(network, loss), optimizer)
step.set_train()
losses = [float(step(Tensor(images), Tensor(labels))) for _ in range(12)]
