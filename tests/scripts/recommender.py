"""Wide and deep: sparse features by embeddings, dense ones by layers, and two optimizers in one step."""

import mindspore as ms
import numpy as np
from mindspore import Parameter, ParameterTuple, Tensor, nn, ops
from mindspore.common.initializer import initializer

ms.set_context(mode=ms.GRAPH_MODE)
ms.set_seed(37)
FIELDS, VALUES = 4, 30


class WideDeep(nn.Cell):
    def __init__(self):
        super().__init__()
        self.wide_w = Parameter(initializer("zeros", [VALUES, 1]), name="wide_w")
        self.wide_b = Parameter(initializer("zeros", [1]), name="wide_b")
        self.table = nn.Embedding(VALUES, 6, embedding_table="normal")
        self.deep = nn.SequentialCell(nn.Dense(FIELDS * 6, 16, "he_uniform", activation="relu"), nn.Dense(16, 1))
        self.gather, self.sum = ops.Gather(), ops.ReduceSum(keep_dims=False)

    def construct(self, ids, values):
        wide = self.sum(self.gather(self.wide_w, ids, 0) * ops.expand_dims(values, -1), 1) + self.wide_b
        deep = self.table(ids) * ops.expand_dims(values, -1)
        return wide + self.deep(ops.reshape(deep, (-1, FIELDS * 6)))


class WithLoss(nn.Cell):
    def __init__(self, network):
        super().__init__()
        self.network, self.loss = network, nn.BCEWithLogitsLoss()

    def construct(self, ids, values, label):
        return self.loss(self.network(ids, values), label)


class TrainStep(nn.Cell):
    def __init__(self, network):
        super().__init__()
        self.network = network
        self.network.set_train()
        weights = network.trainable_params()
        self.wide = ParameterTuple([weight for weight in weights if "wide" in weight.name])
        self.deep = ParameterTuple([weight for weight in weights if "wide" not in weight.name])
        self.optimizer_wide = nn.FTRL(self.wide, learning_rate=0.5, l1=1e-8, l2=1e-8)
        self.optimizer_deep = nn.Adam(self.deep, learning_rate=0.02, eps=1e-8)
        self.grad_wide = ops.GradOperation(get_by_list=True)
        self.grad_deep = ops.GradOperation(get_by_list=True)

    def construct(self, ids, values, label):
        loss = self.network(ids, values, label)
        wide = self.grad_wide(self.network, self.wide)(ids, values, label)
        deep = self.grad_deep(self.network, self.deep)(ids, values, label)
        return ops.depend(loss, (self.optimizer_wide(wide), self.optimizer_deep(deep)))


rng = np.random.default_rng(37)
ids = rng.integers(0, VALUES, (64, FIELDS)).astype(np.int32)
values = np.ones((64, FIELDS), np.float32)
label = (ids[:, :1] % 2).astype(np.float32)
step = TrainStep(WithLoss(WideDeep()))
losses = [float(step(Tensor(ids), Tensor(values), Tensor(label))) for _ in range(15)]
