"""A U-Net that labels pixels was ported from PyTorch to MindSpore, with its training."""

import sys

import numpy as np

ANSWER = {
    "kind": "third trial: a U-Net ported to MindSpore",
    "entry": "mindspore",
    "ask": "compare {faulty} {golden}",
    "run": "msdump run --config {config} --torch-eager {script} {mode}",
    "step": 0,
    "variants": {
        "corners": {
            "goes_wrong": "The pictures are made larger with their corners aligned; the original does not align them.",
            "wants": "the interpolation",
        },
        "joined": {
            "goes_wrong": "What is skipped stands before what comes from below, the weights are for the other order.",
            "wants": "the concatenation of the first way up, or the convolution that reads it",
        },
        "border": {
            "goes_wrong": "The first convolution sees a border that is reflected, the original one of zeros.",
            "wants": "the padding of the first convolution, or the convolution",
        },
        "overlap": {
            "goes_wrong": "The overlap of the loss is taken over the whole batch, not of each picture.",
            "wants": "the sums of the overlap",
        },
        "ignored": {
            "goes_wrong": "Pixels without a label count as background in the cross entropy.",
            "wants": "the cross entropy, or the labels that it reads",
        },
        "decay": {
            "goes_wrong": "Without groups of parameters the optimizer leaves gains and shifts out of its weight decay.",
            "wants": "the optimizer, or its first step, whose gains do not decay",
        },
    },
}

FAULT = sys.argv[2] if sys.argv[1] == "faulty" else ""
CLASSES, BATCH, SIZE, STEPS, RATE, DECAY = 4, 3, 12, 2, 0.05, 1e-2

rng = np.random.default_rng(111)
SHAPES = {
    "down1": (8, 3, 3, 3),
    "down2": (12, 8, 3, 3),
    "middle": (16, 12, 3, 3),
    "up2": (12, 16 + 12, 3, 3),
    "up1": (8, 8 + 8, 3, 3),
    "head": (CLASSES, 8, 1, 1),
}
weights = {"larger.weight": (rng.standard_normal((12, 8, 2, 2)) / 12**0.5).astype(np.float32)}
for key, shape in SHAPES.items():
    weights[f"{key}.weight"] = (rng.standard_normal(shape) * (2 / np.prod(shape[1:])) ** 0.5).astype(np.float32)
    if key == "head":
        weights["head.bias"] = rng.uniform(-0.3, 0.3, CLASSES).astype(np.float32)
    else:
        weights[f"{key}.gain"] = rng.uniform(0.7, 1.3, shape[0]).astype(np.float32)
        weights[f"{key}.shift"] = rng.uniform(-0.3, 0.3, shape[0]).astype(np.float32)
pictures = rng.standard_normal((STEPS, BATCH, 3, SIZE, SIZE), dtype=np.float32)
labels = rng.integers(0, CLASSES, (STEPS, BATCH, SIZE, SIZE)).astype(np.int32)
labels[rng.random(labels.shape) < 0.15] = 255

if sys.argv[1] == "golden":
    import torch
    import torch.nn.functional as F
    from torch import nn

    def stage(key):
        out, into, size, _ = SHAPES[key]
        convolution = nn.Conv2d(into, out, size, padding=1, bias=False)
        return nn.Sequential(convolution, nn.BatchNorm2d(out), nn.ReLU())

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.down1, self.down2, self.middle = stage("down1"), stage("down2"), stage("middle")
            self.up2, self.up1 = stage("up2"), stage("up1")
            self.larger, self.head = nn.ConvTranspose2d(12, 8, 2, 2, bias=False), nn.Conv2d(8, CLASSES, 1)

        def forward(self, x):
            first = self.down1(x)
            second = self.down2(F.max_pool2d(first, 2))
            x = self.middle(F.max_pool2d(second, 2))
            x = F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)
            x = self.up2(torch.cat([x, second], 1))
            x = self.up1(torch.cat([self.larger(x), first], 1))
            return self.head(x)

    def objective(logits, label):
        entropy = F.cross_entropy(logits, label, ignore_index=255)
        known = (label != 255)[:, None]
        shares = logits.softmax(1) * known
        truth = F.one_hot(label.clamp(max=CLASSES - 1), CLASSES).permute(0, 3, 1, 2) * known
        both, either = (shares * truth).sum((2, 3)), (shares + truth).sum((2, 3))
        return entropy + 1 - ((2 * both + 1) / (either + 1)).mean()

    net = Net()
    names = {"gain": "1.weight", "shift": "1.bias", "weight": "0.weight"}
    loaded = {}
    for name, array in weights.items():
        key, kind = name.split(".")
        loaded[name if key in ("head", "larger") else f"{key}.{names[kind]}"] = torch.from_numpy(array)
    net.load_state_dict(loaded, strict=False)
    optimizer = torch.optim.SGD(net.parameters(), lr=RATE, momentum=0.9, weight_decay=DECAY)
    for picture, label in zip(pictures, labels, strict=True):
        loss = objective(net(torch.from_numpy(picture)), torch.from_numpy(label).long())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())
else:
    import mindspore as ms
    from mindspore import nn, ops

    class Stage(nn.Cell):
        def __init__(self, key):
            super().__init__()
            out, into, size, _ = SHAPES[key]
            self.is_reflected = FAULT == "border" and key == "down1"
            padding = 0 if self.is_reflected else 1
            weight, gain, shift = (ms.Tensor(weights[f"{key}.{kind}"]) for kind in ("weight", "gain", "shift"))
            self.conv = nn.Conv2d(into, out, size, pad_mode="pad", padding=padding, weight_init=weight)
            self.norm = nn.BatchNorm2d(out, momentum=0.9, gamma_init=gain, beta_init=shift)

        def construct(self, x):
            if self.is_reflected:
                x = ops.pad(x, (1, 1, 1, 1), mode="reflect")  # fault border
            x = self.conv(x)  # fault border joined
            return ops.relu(self.norm(x))

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.down1, self.down2, self.middle = Stage("down1"), Stage("down2"), Stage("middle")
            self.up2, self.up1 = Stage("up2"), Stage("up1")
            self.larger = nn.Conv2dTranspose(
                12, 8, 2, stride=2, pad_mode="pad", padding=0, weight_init=ms.Tensor(weights["larger.weight"])
            )
            head = {"weight_init": ms.Tensor(weights["head.weight"]), "bias_init": ms.Tensor(weights["head.bias"])}
            self.head = nn.Conv2d(8, CLASSES, 1, has_bias=True, pad_mode="valid", **head)
            self.pool = nn.MaxPool2d(2, 2)

        def construct(self, x):
            first = self.down1(x)
            second = self.down2(self.pool(first))
            x = self.middle(self.pool(second))
            x = ops.interpolate(x, size=(6, 6), mode="bilinear", align_corners=FAULT == "corners")  # fault corners
            x = ops.cat((second, x) if FAULT == "joined" else (x, second), 1)  # fault joined
            x = self.up2(x)  # fault joined
            x = self.up1(ops.cat((self.larger(x), first), 1))
            return self.head(x)

    class Objective(nn.Cell):
        def __init__(self):
            super().__init__()
            self.net = net

        def construct(self, picture, label):
            logits = self.net(picture)
            known = ops.not_equal(label, 255)
            counted = ops.select(known, label, ops.zeros_like(label)) if FAULT == "ignored" else label  # fault ignored
            entropy = ops.cross_entropy(logits, counted, ignore_index=255)  # fault ignored
            known = known.expand_dims(1).astype(ms.float32)
            shares = ops.softmax(logits, 1) * known
            kinds = ops.arange(CLASSES).reshape(1, CLASSES, 1, 1).astype(ms.int32)
            truth = ops.equal(label.expand_dims(1), kinds).astype(ms.float32)
            axes = (0, 2, 3) if FAULT == "overlap" else (2, 3)
            both = (shares * truth).sum(axes)  # fault overlap
            either = (shares + truth).sum(axes)  # fault overlap
            return entropy + 1 - ((2 * both + 1) / (either + 1)).mean()  # fault overlap

    ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU")
    net = Net()
    trained = net.trainable_params()
    groups = trained if FAULT == "decay" else [{"params": trained, "weight_decay": DECAY}]  # fault decay
    optimizer = nn.SGD(groups, RATE, momentum=0.9, weight_decay=DECAY)  # fault decay
    step = nn.TrainOneStepCell(Objective(), optimizer).set_train()
    for picture, label in zip(pictures, labels, strict=True):
        loss = step(ms.Tensor(picture), ms.Tensor(label))  # fault decay
        print(float(loss.asnumpy()))
