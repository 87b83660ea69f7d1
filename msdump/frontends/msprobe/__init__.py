"""`import msprobe` in scripts that `msdump run --as msprobe` runs: the part of mindstudio-probe that dumps PyTorch."""

from typing import NoReturn

# Of `import`, for modules of mindstudio-probe that are not here.
ABSENT = (
    "{name}: not supported: `msdump run --as msprobe` has PrecisionDebugger, seed_all and module_dump of "
    "msprobe.pytorch. For its other tools take mindstudio-probe itself, without --as msprobe: it reads these dumps."
)


def refused(path: str, name: str) -> AttributeError:
    """For a name that a script asks a module for, without `import`."""
    return AttributeError(ABSENT.format(name=f"{path}.{name}"))


def __getattr__(name: str) -> NoReturn:
    raise refused("msprobe", name)
