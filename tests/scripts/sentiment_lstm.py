"""Words to embeddings, through a bidirectional LSTM, to one number: is the sentence good or bad?"""

import math

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops
from mindspore.common.initializer import HeUniform, Uniform

ms.set_seed(13)
rng = np.random.default_rng(13)
WORDS, LENGTH = 30, 7
sentences = rng.integers(0, WORDS, (32, LENGTH)).astype(np.int32)
labels = (sentences < WORDS // 2).sum(axis=1, keepdims=True).astype(np.float32)
labels = (labels > LENGTH / 2).astype(np.float32)


class Sentiment(nn.Cell):
    def __init__(self, hidden):
        super().__init__()
        self.embedding = nn.Embedding(WORDS, 12)
        self.rnn = nn.LSTM(12, hidden, num_layers=2, bidirectional=True, batch_first=True)
        self.fc = nn.Dense(2 * hidden, 1, HeUniform(math.sqrt(5)), Uniform(1 / math.sqrt(2 * hidden)))

    def construct(self, inputs):
        _, (hidden, _) = self.rnn(self.embedding(inputs))
        return self.fc(ops.concat((hidden[-2, :, :], hidden[-1, :, :]), axis=1))


network = Sentiment(10)
loss_of = nn.BCEWithLogitsLoss(reduction="mean")
optimizer = nn.Adam(network.trainable_params(), learning_rate=0.02)
step = ms.value_and_grad(lambda x, y: loss_of(network(x), y), None, optimizer.parameters)
losses = []
for _ in range(20):
    loss, grads = step(Tensor(sentences), Tensor(labels))
    optimizer(grads)
    losses.append(float(loss))
