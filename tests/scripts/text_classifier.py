"""A vocabulary from sentences, padded batches from the text pipeline, and an embedding classifier."""

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn, ops
from mindspore.dataset import text, transforms

ms.set_seed(25)
good, bad = ["fine", "lovely", "bright", "warm"], ["dull", "cold", "poor", "grim"]
rng = np.random.default_rng(25)
sentences, labels = [], []
for number in range(32):
    label = number % 2
    words = list(rng.choice(good if label else bad, 3)) + list(rng.choice(["the", "a", "film", "play"], 2))
    sentences.append(" ".join(words))
    labels.append(label)


class Reviews:
    def __getitem__(self, index):
        return sentences[index], np.int32(labels[index])

    def __len__(self):
        return len(sentences)


vocabulary = text.Vocab.from_list(sorted({word for line in sentences for word in line.split()}), ["<pad>", "<unk>"])
lookup = text.Lookup(vocabulary, unknown_token="<unk>")
data = ds.GeneratorDataset(Reviews(), ["text", "label"], shuffle=False)
data = data.map([text.WhitespaceTokenizer(), lookup, transforms.PadEnd([6], pad_value=0)], "text")
data = data.map(transforms.TypeCast(ms.int32), "label").batch(8)


class Classifier(nn.Cell):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(len(vocabulary.vocab()), 8)
        self.out = nn.Dense(8, 2, "he_uniform")

    def construct(self, ids):
        there = (ids > 0).astype(ms.float32).expand_dims(-1)
        return self.out((self.embedding(ids) * there).sum(axis=1) / there.sum(axis=1))


network = Classifier()
optimizer = nn.Adam(network.trainable_params(), 0.05)
loss_of = nn.CrossEntropyLoss()
step = ms.value_and_grad(lambda x, y: loss_of(network(x), y), None, optimizer.parameters)
losses = []
for _ in range(6):
    parts = []
    for batch in data.create_dict_iterator():
        loss, grads = step(batch["text"], batch["label"])
        optimizer(grads)
        parts.append(float(loss))
    losses.append(sum(parts) / len(parts))
assert float(ops.argmax(network(batch["text"]), 1).equal(batch["label"]).astype(ms.float32).mean()) > 0.9
