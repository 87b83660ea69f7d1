"""Tags of a sequence by a conditional random field over an LSTM: the score of the gold path against all paths."""

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops
from mindspore.common.initializer import Uniform, initializer

ms.set_seed(14)
TAGS, WORDS, LENGTH, BATCH = 3, 20, 5, 4


class CRF(nn.Cell):
    def __init__(self, num_tags):
        super().__init__()
        self.start = Parameter(initializer(Uniform(0.1), (num_tags,), ms.float32), name="start_transitions")
        self.end = Parameter(initializer(Uniform(0.1), (num_tags,), ms.float32), name="end_transitions")
        self.transitions = Parameter(initializer(Uniform(0.1), (num_tags, num_tags), ms.float32), name="transitions")

    def construct(self, emissions, tags):
        return self.normalizer(emissions) - self.score(emissions, tags)

    def score(self, emissions, tags):
        batch = ops.arange(emissions.shape[1])
        score = self.start[tags[0]] + emissions[0, batch, tags[0]]
        for i in range(1, emissions.shape[0]):
            score = score + self.transitions[tags[i - 1], tags[i]] + emissions[i, batch, tags[i]]
        return score + self.end[tags[emissions.shape[0] - 1]]

    def normalizer(self, emissions):
        score = self.start + emissions[0]
        for i in range(1, emissions.shape[0]):
            score = ops.logsumexp(score.expand_dims(2) + self.transitions + emissions[i].expand_dims(1), axis=1)
        return ops.logsumexp(score + self.end, axis=1)


class Tagger(nn.Cell):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(WORDS, 8)
        self.lstm = nn.LSTM(8, 6, bidirectional=True)
        self.to_tags = nn.Dense(12, TAGS, "he_uniform")
        self.crf = CRF(TAGS)

    def construct(self, words, tags):
        features, _ = self.lstm(self.embedding(words))
        return self.crf(self.to_tags(features), tags).mean()


rng = np.random.default_rng(14)
words = Tensor(rng.integers(0, WORDS, (LENGTH, BATCH)).astype(np.int32))
tags = Tensor((words.asnumpy() % TAGS).astype(np.int32))
network = Tagger()
optimizer = nn.SGD(network.trainable_params(), learning_rate=0.2, weight_decay=1e-4)
step = ms.value_and_grad(network, None, optimizer.parameters)
losses = []
for _ in range(15):
    loss, grads = step(words, tags)
    optimizer(grads)
    losses.append(float(loss))
