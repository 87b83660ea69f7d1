"""A path is mistyped: there is no dump."""

ANSWER = {
    "kind": "commands",
    "entry": "eager",
    "ask": "ls {faulty}/nowhere",
    "line": False,
    "exit": 2,
    "says": ["nowhere", "got nothing"],
    "quiet": 2,
    "wants": "the path, that nothing is there, and the status of wrong usage, as of every command",
}

import torch  # noqa: E402

torch.ones(2).sum()
