"""An encoder and a decoder of GRU cells with attention learn to turn a sequence around."""

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops

ms.set_seed(35)
WORDS, LENGTH, HIDDEN = 8, 4, 24


class Encoder(nn.Cell):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(WORDS, HIDDEN, embedding_table="normal")
        self.rnn = nn.GRU(HIDDEN, HIDDEN, batch_first=True)

    def construct(self, words):
        return self.rnn(self.embedding(words))


class Decoder(nn.Cell):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(WORDS + 1, HIDDEN, embedding_table="normal")
        self.cell = nn.GRUCell(HIDDEN, HIDDEN)
        self.out = nn.Dense(2 * HIDDEN, WORDS, "xavier_uniform")

    def construct(self, words, memory, hidden):
        results = []
        for place in range(LENGTH):
            hidden = self.cell(self.embedding(words[:, place]), hidden)
            weights = ops.softmax(ops.bmm(memory, hidden.expand_dims(2)).squeeze(2), axis=1)
            context = ops.bmm(weights.expand_dims(1), memory).squeeze(1)
            results.append(self.out(ops.cat((hidden, context), axis=1)))
        return ops.stack(results, axis=1)


class Translator(nn.Cell):
    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = Encoder(), Decoder()

    def construct(self, source, shifted):
        memory, hidden = self.encoder(source)
        return self.decoder(shifted, memory, hidden[0])


rng = np.random.default_rng(35)
source = rng.integers(0, WORDS, (24, LENGTH)).astype(np.int32)
goal = source[:, ::-1].copy()
shifted = np.concatenate([np.full((24, 1), WORDS, np.int32), goal[:, :-1]], axis=1)
network = Translator()
loss_of = nn.CrossEntropyLoss()
optimizer = nn.Adam(network.trainable_params(), 0.01)


def forward(source, shifted, goal):
    return loss_of(network(source, shifted).reshape(-1, WORDS), goal.reshape(-1))


step = ms.value_and_grad(forward, None, optimizer.parameters)
losses = []
for _ in range(25):
    loss, grads = step(Tensor(source), Tensor(shifted), Tensor(goal))
    optimizer(grads)
    losses.append(float(loss))
