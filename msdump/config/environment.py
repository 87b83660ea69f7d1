"""The environment variables that a dump listens to, read once. The first thing a session looks at."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from msdump.errors import ConfigError, did_you_mean

DUMP_CONFIG = "MINDSPORE_DUMP_CONFIG"
DIAGNOSTIC_PATH = "MS_DIAGNOSTIC_DATA_PATH"
ACL_DUMP_CONFIG = "MS_ACL_DUMP_CFG_PATH"
RANK_ID = "RANK_ID"
DEVICE_ID = "DEVICE_ID"
STRICT = "MSDUMP_STRICT"

_TRUTH_BY_WORD = {"1": True, "true": True, "yes": True, "on": True}
_TRUTH_BY_WORD.update({"": False, "0": False, "false": False, "no": False, "off": False})


@dataclass(frozen=True)
class Environment:
    """What the process was told from outside. None: the variable is unset or empty.

    dump_config_path   text of MINDSPORE_DUMP_CONFIG; None means that Dump is off
    is_strict          every device restriction of MindSpore holds
    """

    dump_config_path: str | None = None
    diagnostic_path: str | None = None
    rank_id: int | None = None
    device_id: int | None = None
    acl_dump_cfg_path: str | None = None
    is_strict: bool = False

    @classmethod
    def from_os(cls, environ: Mapping[str, str] = os.environ) -> Environment:
        """Read the variables.

        Edges:  a wrong RANK_ID, DEVICE_ID or MSDUMP_STRICT is no error while Dump is off: a run that dumps
                nothing must not fail because of the dump.
        Raises: ConfigError.
        """
        dump_config_path = environ.get(DUMP_CONFIG) or None
        if dump_config_path is None:
            return cls(diagnostic_path=environ.get(DIAGNOSTIC_PATH) or None)
        return cls(
            dump_config_path=dump_config_path,
            diagnostic_path=environ.get(DIAGNOSTIC_PATH) or None,
            rank_id=_index(RANK_ID, environ),
            device_id=_index(DEVICE_ID, environ),
            acl_dump_cfg_path=environ.get(ACL_DUMP_CONFIG) or None,
            is_strict=_truth(STRICT, environ),
        )

    @property
    def is_acl_dump(self) -> bool:
        """True when both variables name the same file.   Source: MindSpore compares the two texts."""
        return self.dump_config_path is not None and self.dump_config_path == self.acl_dump_cfg_path


def _index(name: str, environ: Mapping[str, str]) -> int | None:
    text = environ.get(name, "").strip()
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        raise ConfigError(
            f'environment variable {name}: expected a number such as 0 or 7, got "{text}". '
            f"Set it to the number of this process on its host, or unset it."
        )
    return int(text)


def _truth(name: str, environ: Mapping[str, str]) -> bool:
    text = environ.get(name, "").strip()
    truth = _TRUTH_BY_WORD.get(text.lower())
    if truth is None:
        advice = did_you_mean(text, filter(None, _TRUTH_BY_WORD))
        raise ConfigError(f'environment variable {name}: expected 1 or 0, got "{text}". {advice}'.rstrip())
    return truth
