"""A small encoder in the manner of BERT: embeddings of words, places and segments, masked attention, two heads."""

import math

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops
from mindspore.common.initializer import TruncatedNormal

ms.set_context(mode=ms.GRAPH_MODE)
ms.set_seed(18)
WORDS, DIM, HEADS, LENGTH = 40, 16, 4, 10


class SelfAttention(nn.Cell):
    def __init__(self):
        super().__init__()
        init = TruncatedNormal(0.02)
        self.query, self.key = nn.Dense(DIM, DIM, init), nn.Dense(DIM, DIM, init)
        self.value, self.out = nn.Dense(DIM, DIM, init), nn.Dense(DIM, DIM, init)
        self.norm = nn.LayerNorm((DIM,), epsilon=1e-12)

    def split(self, x):
        return x.view(x.shape[0], LENGTH, HEADS, DIM // HEADS).transpose(0, 2, 1, 3)

    def construct(self, x, mask):
        q, k, v = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
        scores = ops.matmul(q, k.swapaxes(-1, -2)) / math.sqrt(DIM // HEADS) + mask
        mixed = ops.matmul(ops.softmax(scores, axis=-1), v).transpose(0, 2, 1, 3).reshape(x.shape)
        return self.norm(self.out(mixed) + x)


class Layer(nn.Cell):
    def __init__(self):
        super().__init__()
        self.attention = SelfAttention()
        self.wide, self.narrow = nn.Dense(DIM, 4 * DIM), nn.Dense(4 * DIM, DIM)
        self.norm = nn.LayerNorm((DIM,), epsilon=1e-12)

    def construct(self, x, mask):
        x = self.attention(x, mask)
        return self.norm(self.narrow(ops.gelu(self.wide(x))) + x)


class Bert(nn.Cell):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(WORDS, DIM, embedding_table=TruncatedNormal(0.02))
        self.places = nn.Embedding(LENGTH, DIM, embedding_table=TruncatedNormal(0.02))
        self.segments = nn.Embedding(2, DIM, embedding_table=TruncatedNormal(0.02))
        self.norm = nn.LayerNorm((DIM,))
        self.layers = nn.CellList([Layer() for _ in range(2)])
        self.masked = nn.Dense(DIM, WORDS)
        self.pooled = nn.Dense(DIM, DIM, activation="tanh")
        self.next = nn.Dense(DIM, 2)

    def construct(self, ids, segments, is_there):
        places = ops.arange(LENGTH).astype(ms.int32)
        x = self.norm(self.words(ids) + self.places(places) + self.segments(segments))
        mask = (1.0 - is_there.expand_dims(1).expand_dims(1)) * -10000.0
        for layer in self.layers:
            x = layer(x, mask)
        return self.masked(x), self.next(self.pooled(x[:, 0]))


class Loss(nn.Cell):
    def __init__(self, network):
        super().__init__()
        self.network = network
        self.entropy = nn.CrossEntropyLoss(ignore_index=-1)

    def construct(self, ids, segments, is_there, labels, follows):
        words, follow = self.network(ids, segments, is_there)
        return self.entropy(words.reshape(-1, WORDS), labels.reshape(-1)) + self.entropy(follow, follows)


rng = np.random.default_rng(18)
ids = rng.integers(4, WORDS, (8, LENGTH)).astype(np.int32)
labels = np.where(rng.random((8, LENGTH)) < 0.3, ids, -1).astype(np.int32)
segments = np.tile((np.arange(LENGTH) > 4).astype(np.int32), (8, 1))
follows = rng.integers(0, 2, 8).astype(np.int32)
there = np.ones((8, LENGTH), np.float32)
there[:, 8:] = 0
network = Loss(Bert())
optimizer = nn.Adam(network.trainable_params(), 0.01)
step = nn.TrainOneStepCell(network, optimizer)
step.set_train()
batch = [Tensor(value) for value in (ids, segments, there, labels, follows)]
losses = [float(step(*batch)) for _ in range(12)]
