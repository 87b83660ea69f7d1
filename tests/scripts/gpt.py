"""Characters one after another: a causal transformer that learns a sentence and then writes it."""

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops
from mindspore.common.initializer import Normal, initializer

ms.set_seed(36)
TEXT = "the quick brown fox jumps over the lazy dog. "
letters = sorted(set(TEXT))
codes = np.array([letters.index(letter) for letter in TEXT], np.int32)
SIZE, DIM, WINDOW = len(letters), 32, 12


class Block(nn.Cell):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm([DIM]), nn.LayerNorm([DIM])
        self.qkv, self.out = nn.Dense(DIM, 3 * DIM, "xavier_uniform"), nn.Dense(DIM, DIM, "xavier_uniform")
        self.up, self.down = nn.Dense(DIM, 2 * DIM, "xavier_uniform"), nn.Dense(2 * DIM, DIM, "xavier_uniform")
        self.mask = Tensor(np.triu(np.full((WINDOW, WINDOW), -1e9, np.float32), 1))

    def construct(self, x):
        q, k, v = ops.split(self.qkv(self.norm1(x)), DIM, axis=-1)
        scores = ops.matmul(q, k.transpose(0, 2, 1)) * DIM**-0.5 + self.mask
        x = x + self.out(ops.matmul(ops.softmax(scores, -1), v))
        return x + self.down(ops.gelu(self.up(self.norm2(x))))


class GPT(nn.Cell):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(SIZE, DIM, embedding_table=Normal(0.1))
        self.places = Parameter(initializer(Normal(0.1), (WINDOW, DIM)), name="places")
        self.blocks = nn.CellList([Block(), Block()])
        self.norm, self.head = nn.LayerNorm([DIM]), nn.Dense(DIM, SIZE, "xavier_uniform", has_bias=False)

    def construct(self, ids):
        x = self.tokens(ids) + self.places
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


starts = np.arange(len(TEXT) - WINDOW)
x = np.stack([codes[start : start + WINDOW] for start in starts])
y = np.stack([codes[start + 1 : start + WINDOW + 1] for start in starts])
network = GPT()
optimizer = nn.AdamWeightDecay(network.trainable_params(), 0.01, weight_decay=0.01)


def forward(x, y):
    return ops.cross_entropy(network(x).view(-1, SIZE), y.view(-1))


step = ms.value_and_grad(forward, None, optimizer.parameters)
losses = []
for _ in range(20):
    loss, grads = step(Tensor(x), Tensor(y))
    optimizer(grads)
    losses.append(float(loss))
window = list(codes[:WINDOW])
for _ in range(5):
    logits = network(Tensor([window[-WINDOW:]], ms.int32))
    window.append(int(logits[0, -1].argmax()))
assert len(window) == WINDOW + 5
