"""Module paths that scripts import from MindSpore and that have no file here.

Source: modules of MindSpore 2.0.0 and 2.7.0.
"""

from __future__ import annotations

from pathlib import Path


def _lists(file: str) -> dict[str, dict[str, list[str]]]:
    """Names of a text file: [module or class] -> what follows > before them, "" for nothing -> names."""
    lists: dict[str, dict[str, list[str]]] = {}
    for line in Path(__file__).with_name(file).read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            here, key = lists.setdefault(line.strip("[]"), {}), ""
        elif line.startswith("> "):
            key = line.removeprefix("> ")
        elif not line.startswith("#"):
            here.setdefault(key, []).extend(line.split())
    return lists


# Path -> modules whose names it shows.
OTHER_PATHS: dict[str, tuple[str, ...]] = {
    f"{source}.{name}": (source,) for source, lists in _lists("module_paths.txt").items() for name in lists[""]
}
OTHER_PATHS |= {
    "common.jit_config": ("common.api",),
    "common.lazy_inline": ("common.api",),
    "common.seed": ("common.generator",),
    "dataset.transforms.vision": ("dataset.vision",),
    "device_manager": ("context",),
    "parallel.algo_parameter_config": ("parallel_context",),
    "parallel.checkpoint_transform": ("train.sliced_checkpoints",),
    "mint.optim": ("experimental.optim.adaptive",),
    "runtime": ("hal",),
    "train.data_sink": ("train.dataset_helper",),
    "train.train_thor": ("train.convert_utils",),
    "train.summary.summary_record": ("train.summary",),
    "nn.utils": ("nn",),
    "nn.metrics": ("train.metrics",),
    "nn.layer.embedding": ("nn.layer.basic",),
    "nn.layer.math": ("nn.layer.basic",),
    "nn.dynamic_lr": ("nn.learning_rate_schedule",),
    "nn.wrap.grad_reducer": ("nn.wrap.cell_wrapper",),
    "ops.functional": ("ops.function", "ops.composite"),
    "boost.grad_accumulation": ("boost",),
}

# Module -> source -> names that MindSpore shows there too, in a module that has a file here.   "": mindspore itself
_SHOWN = {
    "ops.composite": {
        "ops": "clip_by_global_norm clip_by_value count_nonzero cummin dot matmul mm "
        "multinomial normal ones_like repeat_elements repeat_interleave sequence_mask tensor_dot uniform "
        "zeros_like"
    },
    "ops.functional": {"": "get_grad jacfwd jacrev jvp vjp"},
    "ops.operations": {"ops": "identity"},
    "ops.primitive": {"ops": "constexpr"},
    "train.model": {
        "context": "ParallelMode",
        "train": "DatasetHelper ModelCheckpoint load_checkpoint load_param_into_net save_checkpoint",
    },
}
SHOWN = {
    path: {name: source for source, names in sources.items() for name in names.split()}
    for path, sources in _SHOWN.items()
}

# Modules that real MindSpore has and msdump has not -> what to use.
NOT_HERE = {
    "dataset.audio": "Use scipy or torchaudio on arrays, in a function that map calls.",
    "nn.probability": "Write the distribution with mindspore.ops.",
    "nn.sparse": "Write it with dense tensors.",
    "parallel.auto_parallel": "Wrap the network in mindspore.parallel.AutoParallel: nothing is cut over devices here.",
    "rewrite": "Change the network in Python instead of in its source.",
    "safeguard": "Run the model as it is.",
    "scipy": "Use mindspore.ops, mindspore.numpy, or scipy on arrays.",
}


# Module or class -> what to use -> names of it that MindSpore has and that msdump leaves out.
LEFT_OUT = _lists("left_out.txt")
# Modules that show the names of another one, too.
_ALSO = {"": ("train", "mindrecord"), "nn": ("train",), "parallel": ("train",)}


def left_out(module: str, name: str) -> str:
    """What to use in place of a name that is left out; "" for any other name.

    module   its path below mindspore, such as "nn" or "train.metrics.dice"; "" for mindspore itself
    """
    places = [
        ".".join(parts[: len(parts) - at]) for parts in [module.strip(".").split(".")] for at in range(len(parts))
    ]
    for place in [*places, *_ALSO.get(places[-1], ())]:
        for hint, names in LEFT_OUT.get(place, {}).items():
            if name in names:
                return hint
    return ""
