"""Module paths that scripts import from MindSpore and that have no file here.

Source: modules of MindSpore 2.0.0 and 2.7.0.
"""

from __future__ import annotations

from pathlib import Path

_SAME = {
    "dataset": ("engine",),
    "dataset.text": ("c_transforms", "py_transforms", "transforms", "utils"),
    "dataset.transforms": ("c_transforms", "py_transforms", "transforms"),
    "dataset.vision": ("c_transforms", "py_transforms", "transforms"),
    "experimental.optim": (
        "adadelta", "adagrad", "adam", "adamax", "adamw", "asgd", "nadam", "radam", "rmsprop", "rprop", "sgd",
    ),
    "nn.layer": (
        "channel_shuffle", "dense", "rnn_cells", "rnns", "timedistributed",
    ),
    "nn.loss": ("loss",),
    "nn.optim": (
        "ada_grad", "adadelta", "adafactor", "adamax", "adasum", "asgd", "ftrl", "lamb", "lazyadam",
        "proximal_ada_grad", "rmsprop", "rprop", "sgd",
    ),
    "ops.operations": (
        "array_ops", "comm_ops", "control_ops", "custom_ops", "debug_ops", "image_ops", "inner_ops", "linalg_ops",
        "math_ops", "nn_ops", "other_ops", "random_ops", "rl_ops", "sparse_ops", "spectral_ops",
    ),
    "ops.function": (
        "array_func", "clip_func", "debug_func", "fft_func", "grad", "image_func", "linalg_func", "math_func",
        "nn_func", "other_func", "parameter_func", "random_func", "sparse_func", "sparse_unary_func", "spectral_func",
        "vmap_func",
    ),
    "ops.composite": ("base", "math_ops", "multitype_ops"),
    "hal": ("device", "event", "memory", "stream"),
    "numpy": ("array_creations", "array_ops", "logic_ops", "math_ops"),
    "communication": ("management",),
    "train.callback": (
        "_backup_and_restore", "_callback", "_checkpoint", "_early_stop", "_history", "_lambda_callback",
        "_landscape", "_loss_monitor", "_lr_scheduler_callback", "_on_request_exit", "_reduce_lr_on_plateau",
        "_summary_collector", "_time_monitor",
    ),
    "train.metrics": (
        "accuracy", "bleu_score", "confusion_matrix", "cosine_similarity", "dice", "error", "fbeta",
        "hausdorff_distance", "loss", "mean_surface_distance", "metric", "occlusion_sensitivity", "perplexity",
        "precision", "recall", "roc", "root_mean_square_surface_distance", "topk",
    ),
}  # fmt: skip

# Path -> modules whose names it shows.
OTHER_PATHS: dict[str, tuple[str, ...]] = {
    f"{source}.{name}": (source,) for source, names in _SAME.items() for name in names
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


def _left_out() -> dict[str, dict[str, set[str]]]:
    """Module or class -> what to use -> names of it that MindSpore has and that msdump leaves out."""
    lists: dict[str, dict[str, set[str]]] = {}
    for line in Path(__file__).with_name("left_out.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            here = lists[line.strip("[]")] = {}
        elif line.startswith("> "):
            names = here[line.removeprefix("> ")] = set()
        elif not line.startswith("#"):
            names.update(line.split())
    return lists


LEFT_OUT = _left_out()
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
