"""Samples written to a MindRecord file, read back in batches, and a network on them."""

import os
import tempfile

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn
from mindspore.mindrecord import FileWriter

ms.set_seed(34)
rng = np.random.default_rng(34)
vectors = rng.standard_normal((24, 6)).astype(np.float32)
targets = vectors.sum(axis=1, keepdims=True).astype(np.float32)
network = nn.Dense(6, 1, "zeros")
optimizer = nn.SGD(network.trainable_params(), 0.1)
loss_of = nn.MSELoss()
step = ms.value_and_grad(lambda x, y: loss_of(network(x), y), None, optimizer.parameters)
losses = []
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "vectors.mindrecord")
    writer = FileWriter(file_name=path, shard_num=1, overwrite=True)
    schema = {
        "name": {"type": "string"},
        "x": {"type": "float32", "shape": [-1]},
        "y": {"type": "float32", "shape": [-1]},
    }
    writer.add_schema(schema, "vectors and their sums")
    writer.write_raw_data(
        [{"name": f"v{index}", "x": vectors[index], "y": targets[index]} for index in range(len(vectors))]
    )
    writer.commit()
    data = ds.MindDataset(path, columns_list=["x", "y"], shuffle=False).batch(8)
    assert data.get_dataset_size() == 3
    for _ in range(10):
        for batch in data.create_dict_iterator(num_epochs=1):
            loss, grads = step(batch["x"], batch["y"])
            optimizer(grads)
            losses.append(float(loss))
