"""The environment variables of ACL's exception dump, and the folder that it goes to."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from msdump.config.acl_rules import BRIEF, DETAIL, NORM
from msdump.errors import did_you_mean

NPU_COLLECT_PATH = "NPU_COLLECT_PATH"
ASCEND_DUMP_SCENE = "ASCEND_DUMP_SCENE"
ASCEND_DUMP_PATH = "ASCEND_DUMP_PATH"
ASCEND_WORK_PATH = "ASCEND_WORK_PATH"
# The page's order, with the variable of the newest version in its place before ASCEND_WORK_PATH.
_EXCEPTION_PATHS = (NPU_COLLECT_PATH, ASCEND_DUMP_PATH, ASCEND_WORK_PATH)
_SCENES = (BRIEF, NORM, DETAIL)


@dataclass(frozen=True)
class AclEnvironment:
    """What the process was told from outside.

    scene            of an exception dump that needs no acl.json; "" = none
    exception_paths  folders that come before `dump_path` for the files of exceptions, first choice first
    warnings         variables that are set and not understood
    """

    scene: str = ""
    exception_paths: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @classmethod
    def from_os(cls, environ: Mapping[str, str] = os.environ) -> AclEnvironment:
        """Read the variables; ASCEND_DUMP_SCENE wins over NPU_COLLECT_PATH, which means the norm scene."""
        scene = environ.get(ASCEND_DUMP_SCENE, "")
        warnings: tuple[str, ...] = ()
        if scene and scene not in _SCENES:
            expected = ", ".join(_SCENES)
            warnings = (
                f"{ASCEND_DUMP_SCENE}: expected one of {expected}, got {scene!r}. Ignored. "
                f"{did_you_mean(scene, _SCENES)}".rstrip(),
            )
            scene = ""
        if not scene and environ.get(NPU_COLLECT_PATH):
            scene = NORM
        return cls(scene, _set(environ, _EXCEPTION_PATHS), warnings)


def exception_folder(environment: AclEnvironment, dump_path: Path | None, current: Path) -> Path:
    """Where the folder `extra-info` of an exception dump goes: variables, then `dump_path`, then the current folder.

    Edges:  a folder of a variable is made; one that cannot be made, read or written is passed over.
    """
    return _first_usable(environment.exception_paths, current) or dump_path or current


def _set(environ: Mapping[str, str], names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(environ[name] for name in names if environ.get(name))


def _first_usable(paths: tuple[str, ...], current: Path) -> Path | None:
    return next((current / path for path in paths if _is_usable(current / path)), None)


def _is_usable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError):
        return False
    return os.access(folder, os.R_OK | os.W_OK)
