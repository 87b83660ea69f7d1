"""`msprobe.mindspore`, which there is not: says so."""

raise ImportError(
    "msprobe.mindspore: not supported: `msdump run --as msprobe` dumps PyTorch. A MindSpore script runs by "
    "`msdump run --config data_dump.json SCRIPT`."
)
