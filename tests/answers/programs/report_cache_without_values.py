"""A cache of keys and values is memory that nothing has written; the mask hides it, but 0 * NaN is NaN."""

import sys

import torch

ANSWER = {
    "kind": "public reports",
    "entry": "eager",
    "run": "msdump run --torch-eager -o {mode} {script} {mode}",
    "ask": "nan {faulty}",
    "operator": "",
    "wants": "the line that makes the memory of the cache; not the projection after the attention",
}

torch.use_deterministic_algorithms(True)  # which fills memory that is made with NaN
torch.manual_seed(10)


class Attention(torch.nn.Module):
    def __init__(self, size=8, length=6):
        super().__init__()
        self.qkv, self.out = torch.nn.Linear(size, 3 * size), torch.nn.Linear(size, size)
        make = torch.empty if sys.argv[1] == "faulty" else torch.zeros
        self.register_buffer("cache", make(2, length, size))  # fault

    def forward(self, x, place):
        query, key, value = self.qkv(x).chunk(3, -1)
        self.cache[0, place], self.cache[1, place] = key[0], value[0]
        hidden = torch.arange(self.cache.shape[1]) > place
        scores = (query @ self.cache[0].t() / 8**0.5).masked_fill(hidden, float("-inf"))
        return self.out(torch.softmax(scores, -1) @ self.cache[1])


net = Attention().eval()
with torch.no_grad():
    for place in range(4):
        net(torch.randn(1, 8), place)
