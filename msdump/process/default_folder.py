"""The folder of a dump for which none was named: a new one for each run, the same for all ranks of a job."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from msdump.errors import ConfigError, FolderError

CLAIM_FILE = ".claimed_by"
# The configuration that took the place of one. Other tools look for files of their own by names such as `dump.json`.
CONFIG_NAME = "msdump_config.json"
_MOST = 10_000
# Of torchrun: where the ranks of a job meet, which job it is, and how many they are.
_JOB = ("MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "WORLD_SIZE")


def claim_folder(base: Path, environ: Mapping[str, str] = os.environ, is_exact: bool = False) -> Path:
    """Make the folder, or `base_2`, `base_3` and so on where runs before have filled it.

    is_exact  the name was typed: no other one will do
    Edges:    ranks that torchrun has started take the folder that the first of them has made, but not one that holds
              a dump of their own rank.
    Raises:   ConfigError where `is_exact` and the folder holds something; FolderError where it cannot be made.
    """
    rank = environ.get("RANK", "")
    job = "/".join(environ.get(name, "") for name in _JOB) if rank.isdigit() else os.urandom(16).hex()
    for folder in itertools.islice(numbered(base), _MOST):
        try:
            if _take(folder, job) and not (folder / f"rank_{rank}").exists():
                return folder
        except OSError as error:
            raise FolderError(
                f"{folder}: expected a folder that can be made, got {error.strerror}. Name another one with --output, "
                "or go to a folder that can be written."
            ) from error
        if is_exact:
            raise ConfigError(
                f"--output: expected a folder that is empty or not there, got {folder}. Choose another name."
            )
    raise ConfigError(f"{base}: expected fewer than {_MOST} folders of this name with a number. Remove old ones.")


def numbered(base: Path) -> Iterator[Path]:
    """The folder itself, then `base_2`, `base_3` and so on."""
    yield base
    for number in itertools.count(2):
        yield base.with_name(f"{base.name}_{number}")


def _take(folder: Path, job: str) -> bool:
    """Whether it is the job's: it was empty, or another rank has taken it."""
    claim = folder / CLAIM_FILE
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    own = folder / f"{CLAIM_FILE}.{os.urandom(16).hex()}"
    if not claim.exists() and any(not name.startswith(CLAIM_FILE) for name in os.listdir(folder)):
        return False
    try:
        own.write_text(job)
        os.link(own, claim)  # whole, or not there
    except FileExistsError:
        return claim.read_text() == job
    finally:
        own.unlink(missing_ok=True)
    return True


def release_empty(folder: Path) -> None:
    """Remove the folder where it holds nothing but what this file has made, and the configuration."""
    try:
        names = set(os.listdir(folder))
        if names <= {CLAIM_FILE, CONFIG_NAME}:
            for name in names:
                (folder / name).unlink()
            folder.rmdir()
    except OSError:
        pass  # it stays
