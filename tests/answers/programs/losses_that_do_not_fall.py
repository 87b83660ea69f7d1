"""Trainings whose loss, data or steps are not what they should be, though each parameter has a gradient."""

import itertools
import sys

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

ANSWER = {
    "kind": "trainings that do not learn",
    "entry": "eager",
    "run": "msdump run --torch-eager -o {mode} {script} {mode}",
    "ask": "nan {faulty}",
    "variants": {
        "softmax_twice": {
            "goes_wrong": "The model ends with a softmax, and the cross entropy takes another one.",
            "says": ["probabilities of them again"],
            "wants": "the cross entropy, which reads probabilities, its line",
        },
        "sigmoid_twice": {
            "goes_wrong": "A binary cross entropy with logits is given a sigmoid.",
            "says": ["probabilities of them again"],
            "wants": "the cross entropy, which reads probabilities, its line",
        },
        "no_logarithm": {
            "goes_wrong": "The negative log-likelihood is given scores, not logarithms of probabilities.",
            "says": ["logarithms of probabilities"],
            "wants": "the loss, which reads what are no logarithms, its line",
        },
        "wrong_axis": {
            "goes_wrong": "The softmax of the loss runs over the batch, not over the classes.",
            "says": ["axis 0"],
            "wants": "the softmax over axis 0, its line",
        },
        "broadcast": {
            "goes_wrong": "Predictions of (32, 1) meet targets of (32): each is compared with all.",
            "says": ["all with all"],
            "wants": "the difference of (32, 1) and (32), its line",
        },
        "out_of_reach": {
            "goes_wrong": "Targets about 5 are to be met by a sigmoid.",
            "says": ["targets are"],
            "wants": "the sigmoid, or the loss, and the mean of its targets",
        },
        "maximised": {
            "goes_wrong": "The optimizer was told to maximise the loss.",
            "says": ["loss grows"],
            "wants": "the loss, which grows, its line",
        },
        "unstepped": {
            "goes_wrong": "The parentheses after 'optimizer.step' are missing.",
            "says": ["never makes a step"],
            "wants": "that the optimizer never makes a step, the line of the backward pass or of the step",
        },
        "accumulated_too_far": {
            "goes_wrong": "Gradients of 16 batches are added up for a step, and an epoch has 8 of them.",
            "says": ["never makes a step"],
            "wants": "that the optimizer never makes a step, the line of the backward pass or of the step",
        },
        "cleared_once": {
            "goes_wrong": "Gradients are cleared once in each epoch, and added up in between.",
            "says": ["seldom cleared"],
            "wants": "that gradients are added up over steps, the line of the step",
        },
        "zeros_between": {
            "goes_wrong": "Gradients are set to 0 between the backward pass and the step.",
            "says": ["stands still"],
            "wants": "the weights, which stand still, the line of the step",
        },
        "made_anew": {
            "goes_wrong": "Adam is made anew in each iteration, and forgets its state.",
            "says": ["made anew"],
            "wants": "that each optimizer makes one step, the line of the step",
        },
        "clipped_away": {
            "goes_wrong": "Gradients are clipped to a norm of 0.0001, for an optimizer with a rate of 0.01.",
            "says": ["stands still"],
            "wants": "the weights, which hardly change, the line of the step",
        },
        "decayed": {
            "goes_wrong": "A weight decay of 10 takes a tenth of each weight in each step.",
            "says": ["a decay takes"],
            "wants": "the decay, the line of the step",
        },
        "rate_per_batch": {
            "goes_wrong": "A schedule for epochs is stepped for each batch: the rate is a ten millionth soon.",
            "says": ["learning rate falls"],
            "wants": "the learning rate, which falls at once, the line of the step",
        },
        "constant_start": {
            "goes_wrong": "All weights begin with 0.1, and all units of a layer stay alike.",
            "says": ["alike"],
            "wants": "the weights that make all units alike, the line that calls their layer",
        },
        "statistics_kept": {
            "goes_wrong": "A batch norm has a momentum of 0: its running statistics stay 0 and 1.",
            "says": ["never change"],
            "wants": "the running statistics, the line of the batch norm",
        },
        "evaluated_at_first": {
            "goes_wrong": "The model is in evaluation mode from the beginning on, with statistics of 0 and 1.",
            "says": ["evaluation mode"],
            "wants": "the statistics, or that the model is trained in evaluation mode",
        },
        "evaluated_since": {
            "goes_wrong": "The model stays in evaluation mode after the first epoch, and its dropout is off.",
            "says": ["evaluation mode"],
            "wants": "the dropout, or that the model stays in evaluation mode",
        },
        "rebound": {
            "goes_wrong": "A step by hand gives each new weight to a name of the loop, not to the weight.",
            "says": ["thrown away"],
            "wants": "a weight, whose new value is thrown away, the line of the sum",
        },
        "huge_rate": {
            "goes_wrong": "Adam has a rate of 3, and the first step already makes the weights many times as large.",
            "says": ["far too large"],
            "wants": "the first step, which is far too large, its line",
        },
        "second_loss": {
            "goes_wrong": "The loss of the second head is computed, and not added.",
            "says": ["no part of the loss"],
            "wants": "the second head, which gets no gradient, the line of its loss",
        },
        "one_number": {
            "goes_wrong": "Features between 0 and 1 are rounded up: all of them are 1.",
            "says": ["are 1"],
            "wants": "that all inputs are 1, the line that reads them",
        },
        "unknown_words": {
            "goes_wrong": "All words became the one that stands for unknown words.",
            "says": ["are 1"],
            "wants": "that all words are word 1, the line of the table",
        },
        "labels_of_a_loader": {
            "goes_wrong": "Labels are divided by the number of classes, and are all 0.",
            "says": ["labels are 0"],
            "wants": "that all labels are 0, the line of the loss",
        },
        "first_rows": {
            "goes_wrong": "A counter is never raised: each batch is the first 32 rows of 256.",
            "says": ["the same 32 of 256 rows"],
            "wants": "that the batch is the same in each iteration, its line",
        },
    },
}

FAULT, WHICH = sys.argv[1] == "faulty", sys.argv[2]
WRONG = {WHICH} if FAULT else set()
torch.manual_seed(5)


class Net(nn.Module):
    def __init__(self, outputs):
        super().__init__()
        norms = ("statistics_kept", "evaluated_at_first")
        self.table = nn.Embedding(50, 8) if WHICH == "unknown_words" else nn.Identity()
        self.body = nn.Linear(8, 16)
        momentum = 0.0 if "statistics_kept" in WRONG else 0.1
        self.norm = nn.BatchNorm1d(16, momentum=momentum) if WHICH in norms else nn.Identity()
        self.drop = nn.Dropout(0.3) if WHICH == "evaluated_since" else nn.Identity()
        self.head, self.second = nn.Linear(16, outputs), nn.Linear(16, 1)
        self.second.requires_grad_(WHICH == "second_loss")

    def hidden(self, x):
        x = self.table(x)  # fault unknown_words
        x = x.mean(1) if WHICH == "unknown_words" else x
        x = self.drop(self.body(x))  # fault one_number evaluated_since constant_start
        return torch.tanh(self.norm(x))  # fault statistics_kept evaluated_at_first

    def forward(self, x):
        return self.head(self.hidden(x))


def data():
    x = torch.randn(256, 8)
    y = (x @ torch.randn(8, 3)).argmax(1)
    if WHICH == "one_number":
        x = torch.rand(256, 8)
        y, x = (3 * x[:, 0]).long(), x.ceil() if FAULT else x
    if WHICH == "unknown_words":
        x = torch.randint(1, 50, (256, 6))
        y, x = x[:, 0] % 3, x.clamp(max=1) if FAULT else x
    if WHICH == "labels_of_a_loader":
        y = y // 3 if FAULT else y
    return x, y


def loss_of(net, x, y):
    if WHICH == "sigmoid_twice":
        scores = net(x)[:, 0]
        scores = torch.sigmoid(scores) if FAULT else scores
        return functional.binary_cross_entropy_with_logits(scores, (y > 0).float())  # fault sigmoid_twice
    if WHICH == "broadcast":
        wanted = x[:, 0] if FAULT else x[:, :1]
        return ((net(x) - wanted) ** 2).mean()  # fault broadcast
    if WHICH == "out_of_reach":
        given = torch.sigmoid(net(x)) if FAULT else net(x)  # fault out_of_reach
        return functional.mse_loss(given, 5 + x[:, :1])  # fault out_of_reach
    scores = net(x)
    if "softmax_twice" in WRONG:
        scores = torch.softmax(scores, 1)
    if WHICH in ("no_logarithm", "wrong_axis"):
        scores = scores if "no_logarithm" in WRONG else torch.log_softmax(scores, 0 if FAULT else 1)  # fault wrong_axis
        return functional.nll_loss(scores, y)  # fault no_logarithm
    loss = functional.cross_entropy(scores, y)  # fault softmax_twice maximised labels_of_a_loader
    if WHICH == "second_loss":
        second = functional.mse_loss(net.second(net.hidden(x)), x[:, :1])  # fault second_loss
        return loss if FAULT else loss + second
    return loss


def made(net):
    weights = [each for each in net.parameters() if each.requires_grad]
    if WHICH in ("zeros_between", "clipped_away"):
        return torch.optim.SGD(weights, 0.01)
    if WHICH == "decayed":
        return torch.optim.AdamW(weights, 0.01, weight_decay=10.0 if FAULT else 0.1)
    if WHICH == "rate_per_batch":
        return torch.optim.SGD(weights, 0.1, momentum=0.9)
    return torch.optim.Adam(weights, 3.0 if "huge_rate" in WRONG else 0.01, maximize="maximised" in WRONG)


def step_by_hand(net):
    net_gradients = [each for each in net.parameters() if each.grad is not None]
    with torch.no_grad():
        for weight in net_gradients:
            if FAULT:
                weight = weight - 0.1 * weight.grad  # fault rebound
            else:
                weight -= 0.1 * weight.grad


net = Net(1 if WHICH in ("broadcast", "out_of_reach") else 3)
if "constant_start" in WRONG:
    for each in net.parameters():
        nn.init.constant_(each, 0.1 if each.ndim > 1 else 0.0)
net.train("evaluated_at_first" not in WRONG)
x, y = data()
loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=WHICH != "first_rows")
optimizer = None if WHICH == "rebound" else made(net)
schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5) if WHICH == "rate_per_batch" else None
COUNT = 16 if "accumulated_too_far" in WRONG else 4 if WHICH == "accumulated_too_far" else 1
batch = 0
for epoch in range(5):
    if WHICH in ("cleared_once", "accumulated_too_far"):
        optimizer.zero_grad()
    if WHICH == "evaluated_since" and not FAULT:
        net.train()
    for number, (given, wanted) in enumerate(itertools.islice(loader, 8)):
        if WHICH == "first_rows":
            given, wanted = x[batch : batch + 32], y[batch : batch + 32]  # fault first_rows
            batch = batch if FAULT else (batch + 32) % 256
        if "made_anew" in WRONG:
            optimizer = made(net)
        if WHICH not in ("cleared_once", "accumulated_too_far") or (WHICH == "cleared_once" and not FAULT):
            net.zero_grad()
        loss = loss_of(net, given, wanted) / COUNT
        loss.backward()  # fault unstepped accumulated_too_far
        if "zeros_between" in WRONG:
            optimizer.zero_grad(set_to_none=False)
        if WHICH == "clipped_away":
            nn.utils.clip_grad_norm_(net.parameters(), 1e-4 if FAULT else 1.0)
        if WHICH == "rebound":
            step_by_hand(net)
        elif "unstepped" in WRONG:
            optimizer.step  # noqa: B018 # fault unstepped
        elif (number + 1) % COUNT == 0:
            if WHICH in ("cleared_once", "zeros_between", "made_anew", "clipped_away"):
                optimizer.step()  # fault cleared_once zeros_between made_anew clipped_away
            else:
                optimizer.step()  # fault decayed rate_per_batch huge_rate
            if "rate_per_batch" in WRONG:
                schedule.step()
            if WHICH == "accumulated_too_far":
                optimizer.zero_grad()
        print(epoch, loss.item())
    if WHICH == "rate_per_batch" and not FAULT:
        schedule.step()
    if WHICH == "evaluated_since":
        net.eval()
        with torch.no_grad():
            print(functional.cross_entropy(net(x), y).item())
