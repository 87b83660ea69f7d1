"""Environment variables of msdump, and how their text is parsed.

Each function reads from `environ` when it is called: a script may set a variable until the first graph is compiled.
Variables with which one process of msdump hands something to another stand with the code that does so.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from msdump.config.sampling import Sampling, parse_sampling
from msdump.errors import ConfigError, did_you_mean, shown_argument
from msdump.tables.messages import ENGLISH, LANGUAGES

# MindSpore Dump: which configuration, whose process.
DUMP_CONFIG = "MINDSPORE_DUMP_CONFIG"
DIAGNOSTIC_PATH = "MS_DIAGNOSTIC_DATA_PATH"
ACL_DUMP_CONFIG = "MS_ACL_DUMP_CFG_PATH"
RANK_ID, DEVICE_ID, RANK_SIZE = "RANK_ID", "DEVICE_ID", "RANK_SIZE"
LOG_LEVEL = "GLOG_v"
# Graph files of the graph engine.
GE_GRAPH, GE_LEVEL, GE_PATH, GE_FORMAT = "DUMP_GE_GRAPH", "DUMP_GRAPH_LEVEL", "DUMP_GRAPH_PATH", "DUMP_GRAPH_FORMAT"
# ACL's exception dump.
NPU_COLLECT_PATH = "NPU_COLLECT_PATH"
ASCEND_DUMP_SCENE, ASCEND_DUMP_PATH = "ASCEND_DUMP_SCENE", "ASCEND_DUMP_PATH"
ASCEND_WORK_PATH = "ASCEND_WORK_PATH"
# PyTorch and TorchAir: ranks as torchrun sets them, the folder of TorchAir's caches, PyTorch's debug folder.
TORCH_RANK, TORCH_LOCAL_RANK = "RANK", "LOCAL_RANK"
# Jobs of several processes, as torchrun, MindSpore's dynamic cluster and Open MPI set them.
TORCH_SIZE, TORCH_LOCAL_SIZE = "WORLD_SIZE", "LOCAL_WORLD_SIZE"
TORCH_ADDRESS, TORCH_PORT = "MASTER_ADDR", "MASTER_PORT"
MS_ROLE, MS_NODE, MS_WORKERS = "MS_ROLE", "MS_NODE_ID", "MS_WORKER_NUM"
MS_ADDRESS, MS_PORT = "MS_SCHED_HOST", "MS_SCHED_PORT"
MPI_RANK, MPI_SIZE = "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"
MPI_LOCAL_RANK = "OMPI_COMM_WORLD_LOCAL_RANK"
TORCHAIR_CACHE = "TORCHAIR_CACHE_HOME"
TORCH_DEBUG = "TORCH_COMPILE_DEBUG"
# msdump's own.
STRICT = "MSDUMP_STRICT"
ASYNC_BUFFER = "MSDUMP_ASYNC_BUFFER"
BUDGET, FLOOR, KEEP = "MSDUMP_DISK_BUDGET", "MSDUMP_DISK_FLOOR", "MSDUMP_KEEP_ITERATIONS"
ONNX_OPTIMIZATION = "MSDUMP_ONNX_OPTIMIZATION"
KERNELS = "MSDUMP_KERNELS"
MINDSPORE_RELEASE = "MSDUMP_MINDSPORE_VERSION"
CONTAINER, UPLOAD = "MSDUMP_CONTAINER", "MSDUMP_UPLOAD"
SAMPLING = "MSDUMP_SAMPLING"
SERVING = "MSDUMP_SERVING"
NATIVE = "MSDUMP_NATIVE"
LANGUAGE = "MSDUMP_LANGUAGE"
# Of the system, the first that is set counts.
LOCALE = ("LC_ALL", "LC_MESSAGES", "LANG")

VARIABLES = (
    *(DUMP_CONFIG, DIAGNOSTIC_PATH, ACL_DUMP_CONFIG, RANK_ID, DEVICE_ID, RANK_SIZE, LOG_LEVEL),
    *(GE_GRAPH, GE_LEVEL, GE_PATH, GE_FORMAT),
    *(NPU_COLLECT_PATH, ASCEND_DUMP_SCENE, ASCEND_DUMP_PATH, ASCEND_WORK_PATH),
    *(TORCH_RANK, TORCH_LOCAL_RANK, TORCHAIR_CACHE, TORCH_DEBUG),
    *(TORCH_SIZE, TORCH_LOCAL_SIZE, TORCH_ADDRESS, TORCH_PORT),
    *(MS_ROLE, MS_NODE, MS_WORKERS, MS_ADDRESS, MS_PORT, MPI_RANK, MPI_SIZE, MPI_LOCAL_RANK),
    *(STRICT, ASYNC_BUFFER, BUDGET, FLOOR, KEEP, ONNX_OPTIMIZATION, KERNELS, SERVING, NATIVE, CONTAINER, UPLOAD),
    *(SAMPLING, MINDSPORE_RELEASE, LANGUAGE, *LOCALE),
)

BRIEF, NORM, DETAIL = "aic_err_brief_dump", "aic_err_norm_dump", "aic_err_detail_dump"
PROTO, ONNX = "ge_proto", "onnx"

# Releases of MindSpore between which a script may choose; the default is the one whose dump guide msdump follows.
MINDSPORE_RELEASES = ("2.0", "2.1", "2.2", "2.3", "2.4", "2.5", "2.6", "2.7")
DEFAULT_RELEASE = "2.3"

_SCENES = (BRIEF, NORM, DETAIL)
# The page's order, with the variable of the newest version in its place before ASCEND_WORK_PATH.
_EXCEPTION_PATHS = (NPU_COLLECT_PATH, ASCEND_DUMP_PATH, ASCEND_WORK_PATH)
_GE_DETAILS = ("1", "2", "3")
_GE_ALL, _GE_LISTED, _GE_LAST, _GE_FIRST = "1", "2", "3", "4"
_TRUTH_BY_WORD = {"1": True, "true": True, "yes": True, "on": True}
_TRUTH_BY_WORD.update({"": False, "0": False, "false": False, "no": False, "off": False})
_SIZE = re.compile(r"([0-9]{1,18})\s*([KMGT]?)(?:i?B)?", re.IGNORECASE)
# A patch version is of the release in front of it.
_RELEASE = re.compile(r"([0-9]+\.[0-9]+)(?:\.[0-9]+\w*)?")
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]+://[^/].*")
FILES, PACK = CONTAINERS = ("files", "pack")
_FACTOR = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


@dataclass(frozen=True)
class Environment:
    """The environment variables of msdump. None: the variable is unset or empty.

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


def is_serving_watched(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether MSDUMP_SERVING asks the plug-in of serving engines to dump.   Raises: ConfigError."""
    return _truth(SERVING, environ)


def is_native_used(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether `msdump-native` is used where it is installed: MSDUMP_NATIVE is not 0.   Raises: ConfigError."""
    return not environ.get(NATIVE, "").strip() or _truth(NATIVE, environ)


def language(environ: Mapping[str, str] = os.environ) -> str:
    """The language of answers, "en" or "zh": that of MSDUMP_LANGUAGE, else that of the locale.

    Edges:  English for locales of other languages, and for an empty MSDUMP_LANGUAGE without a locale.
    Raises: ConfigError for another MSDUMP_LANGUAGE.
    """
    told = environ.get(LANGUAGE, "").strip()
    chosen = told or next((environ[name] for name in LOCALE if environ.get(name)), "")
    begin = re.split("[-_.@]", chosen.lower())[0]
    if told and begin not in LANGUAGES:
        raise ConfigError(
            f'environment variable {LANGUAGE}: expected en or zh, got "{shown_argument(told)}". '
            "Correct it, or unset it: then the locale decides."
        )
    return begin if begin in LANGUAGES else ENGLISH


def mindspore_release(environ: Mapping[str, str] = os.environ) -> tuple[int, int]:
    """(major, minor) of the release of MindSpore whose behaviour scripts see.   Raises: ConfigError."""
    return _release(environ.get(MINDSPORE_RELEASE, "").strip() or DEFAULT_RELEASE)


@lru_cache
def _release(text: str) -> tuple[int, int]:
    matched = _RELEASE.fullmatch(text)
    if matched is None or matched[1] not in MINDSPORE_RELEASES:
        raise ConfigError(
            f"environment variable {MINDSPORE_RELEASE}: expected a release of MindSpore from "
            f'{MINDSPORE_RELEASES[0]} to {MINDSPORE_RELEASES[-1]}, got "{text}". '
            f"Set it to {DEFAULT_RELEASE}, or unset it."
        )
    major, _, minor = matched[1].partition(".")
    return int(major), int(minor)


@dataclass(frozen=True)
class AclEnvironment:
    """Read the environment variables of msdump.

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

    Edges:  a missing folder of a variable is created; one that cannot be made, read or written is passed over.
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


@dataclass(frozen=True)
class GeGraphSettings:
    """Which graph files the environment sets.

    detail   1 everything, 2 everything but the data of constants, 3 names and edges alone
    stages   text that the name of a stage must hold one of; None: every stage
    formats  among "ge_proto" and "onnx"
    """

    detail: int
    stages: tuple[str, ...] | None
    folder: Path
    formats: tuple[str, ...]

    def wants(self, stage: str) -> bool:
        return self.stages is None or any(text in stage for text in self.stages)


def ge_graph_settings(
    first_stage: str, last_stage: str, environ: Mapping[str, str] = os.environ
) -> GeGraphSettings | None:
    """Settings from the environment; None when they are off.

    Edges:   an empty variable counts as unset; the default folder is the current one.
    Raises:  ConfigError naming the variable.
    Source:  CANN, environment variables: level 1 all stages, 2 (default) those that matter, which is all here, 3 the
             last, 4 the first; or texts separated by "|", one of which must be in the name of the stage.
    """
    detail = environ.get(GE_GRAPH, "").strip()
    if not detail:
        return None
    if detail not in _GE_DETAILS:
        raise ConfigError(
            f"environment variable {GE_GRAPH}: expected 1 (full), 2 (without data) or 3 (names and edges), "
            f'got "{detail}". Unset it when no graph files are wanted.'
        )
    folder = Path(environ.get(GE_PATH, "").strip() or ".")
    return GeGraphSettings(int(detail), _stages(first_stage, last_stage, environ), folder, _formats(environ))


def _stages(first_stage: str, last_stage: str, environ: Mapping[str, str]) -> tuple[str, ...] | None:
    level = environ.get(GE_LEVEL, "").strip() or _GE_LISTED
    if level in (_GE_ALL, _GE_LISTED):
        return None
    if level in (_GE_LAST, _GE_FIRST):
        return (last_stage if level == _GE_LAST else first_stage,)
    texts = tuple(text.strip() for text in level.split("|") if text.strip())
    if not any(text in stage for text in texts for stage in (first_stage, last_stage)):
        advice = did_you_mean(level, (first_stage, last_stage))
        raise ConfigError(
            f"environment variable {GE_LEVEL}: expected 1 to 4, or parts of {first_stage} or {last_stage}, "
            f'got "{level}". {advice}'.rstrip()
        )
    return texts


def _formats(environ: Mapping[str, str]) -> tuple[str, ...]:
    text = environ.get(GE_FORMAT, "").strip() or f"{PROTO}|{ONNX}"
    formats = tuple(dict.fromkeys(part.strip() for part in text.split("|") if part.strip()))
    for part in formats:
        if part not in (PROTO, ONNX):
            advice = did_you_mean(part, (PROTO, ONNX))
            raise ConfigError(
                f'environment variable {GE_FORMAT}: expected {PROTO}, {ONNX} or both with "|" between, got "{part}". '
                f"{advice}".rstrip()
            )
    return formats


@dataclass(frozen=True, slots=True)
class DiskLimits:
    """What the user set. None: no budget, the default floor, all iterations are kept.

    budget_name   what says so, for messages
    """

    budget_bytes: int | None = None
    floor_bytes: int | None = None
    keep_iterations: int | None = None
    budget_name: str = BUDGET


def disk_limits(environ: Mapping[str, str] = os.environ, budget_bytes: int | None = None) -> DiskLimits:
    """Limits from MSDUMP_DISK_BUDGET, MSDUMP_DISK_FLOOR and MSDUMP_KEEP_ITERATIONS; empty ones count as unset.

    budget_bytes  of the configuration, which counts before the variable; None: it says nothing
    Raises: ConfigError naming the variable.
    """
    if budget_bytes is not None:
        return replace(disk_limits(environ), budget_bytes=budget_bytes, budget_name="disk_budget")
    budget, floor, keep = (environ.get(name, "").strip() for name in (BUDGET, FLOOR, KEEP))
    if keep and not (keep.isascii() and keep.isdigit() and 0 < int(keep[:19]) < 2**63):
        raise ConfigError(
            f'environment variable {KEEP}: expected a number from 1 on, got "{keep}". '
            "Set it to the number of iterations to keep on the disk, or unset it."
        )
    return DiskLimits(
        parse_size(BUDGET, budget) if budget else None,
        parse_size(FLOOR, floor, smallest=0) if floor else None,
        int(keep) if keep else None,
    )


def kernels(environ: Mapping[str, str] = os.environ) -> str:
    """The library that MSDUMP_KERNELS has compute operators, "auto" when unset or empty.   Raises: ConfigError."""
    text = environ.get(KERNELS, "").strip().lower() or "auto"
    if text not in ("auto", "numpy", "torch"):
        raise ConfigError(f'environment variable {KERNELS}: expected auto, numpy or torch, got "{text}". Correct it.')
    return text


def container(environ: Mapping[str, str] = os.environ) -> str:
    """What MSDUMP_CONTAINER puts the files of an iteration into, "files" or "pack"; "" when it is unset or empty.

    Raises: ConfigError.
    """
    text = environ.get(CONTAINER, "").strip().lower()
    if text and text not in CONTAINERS:
        raise ConfigError(
            f'environment variable {CONTAINER}: expected files or pack, got "{text}". '
            f"{did_you_mean(text, CONTAINERS)}".rstrip()
        )
    return text


def sampling(environ: Mapping[str, str] = os.environ) -> Sampling | None:
    """What MSDUMP_SAMPLING says, for configurations that say nothing; None when it is unset or empty.

    Raises: ConfigError.
    """
    text = environ.get(SAMPLING, "").strip()
    return parse_sampling(text, f"environment variable {SAMPLING}") if text else None


def upload_address(environ: Mapping[str, str] = os.environ) -> str:
    """Where MSDUMP_UPLOAD sends packs that are whole, `s3://bucket/job`; "" when it is unset or empty.

    Raises: ConfigError.
    """
    text = environ.get(UPLOAD, "").strip()
    if text and not _ADDRESS.fullmatch(text):
        raise ConfigError(
            f"environment variable {UPLOAD}: expected an address such as s3://bucket/job, got "
            f'"{shown_argument(text)}". Correct it, or unset the variable.'
        )
    return text.rstrip("/")


def async_buffer(environ: Mapping[str, str] = os.environ) -> int | None:
    """Bytes that MSDUMP_ASYNC_BUFFER sets ("512M", "2G", "1000000"); None: unset or empty.   Raises: ConfigError."""
    text = environ.get(ASYNC_BUFFER, "").strip()
    return parse_size(ASYNC_BUFFER, text) if text else None


def parse_size(variable: str, text: str, smallest: int = 1) -> int:
    """Bytes; K, M, G and T are powers of 1024, with any letters after them.

    Raises: ConfigError naming the environment variable.
    """
    size = size_of(text)
    if size is None or size < smallest:
        raise ConfigError(
            f"environment variable {variable}: expected a size of at least {smallest} bytes such as 512M, 2G or "
            f'1000000, got "{text}". Correct it, or unset the variable.'
        )
    return size


def size_of(text: str) -> int | None:
    """Bytes that a text names, as `parse_size`; None where it names none."""
    match = _SIZE.fullmatch(text.strip())
    return None if match is None else int(match[1]) * _FACTOR[match[2].upper()]


def format_size(size_bytes: int) -> str:
    """A size for people, of three digits: "0 B", "999 B", "1.5 KiB", "1023 KiB", "2.93 GiB"."""
    size, units = float(size_bytes), ["B", "KiB", "MiB", "GiB", "TiB"]
    while size >= 1024 and len(units) > 1:
        size /= 1024
        del units[0]
    if units[0] == "B":
        return f"{size_bytes} B"
    return f"{size:.3g} {units[0]}" if size < 999.5 else f"{size:.0f} {units[0]}"


log = logging.getLogger("msdump")
_CONSEQUENCES = {CONTAINER: "its files stay files", UPLOAD: "`msdump pack --upload` sends its files"}


def say_ignored(dump: str, *names: str) -> None:
    """Warn of each of these variables that is set.   dump: which one does not obey them, "a dump of TorchAir"

    Raises: ConfigError for values that no dump takes.
    """
    asked = {CONTAINER: container() == PACK, UPLOAD: bool(upload_address())}
    for name in names:
        if asked[name]:
            log.warning("%s has no effect on %s: %s.", name, dump, _CONSEQUENCES[name])
