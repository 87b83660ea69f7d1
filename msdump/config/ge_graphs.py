"""DUMP_GE_GRAPH and its companions: which graph files are wanted, and where."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from msdump.errors import ConfigError, did_you_mean

GE_GRAPH, LEVEL, PATH, FORMAT = "DUMP_GE_GRAPH", "DUMP_GRAPH_LEVEL", "DUMP_GRAPH_PATH", "DUMP_GRAPH_FORMAT"
PROTO, ONNX = "ge_proto", "onnx"
_DETAILS = ("1", "2", "3")
_ALL, _LISTED, _LAST, _FIRST = "1", "2", "3", "4"


@dataclass(frozen=True)
class GeGraphSettings:
    """What the environment asks for.

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
    """Settings from the environment; None when no graph files are wanted.

    Edges:   an empty variable counts as unset; the default folder is the current one.
    Raises:  ConfigError naming the variable.
    Source:  CANN, environment variables: level 1 all stages, 2 (default) those that matter, which is all here, 3 the
             last, 4 the first; or texts separated by "|", one of which must be in the name of the stage.
    """
    detail = environ.get(GE_GRAPH, "").strip()
    if not detail:
        return None
    if detail not in _DETAILS:
        raise ConfigError(
            f"environment variable {GE_GRAPH}: expected 1 (full), 2 (without data) or 3 (names and edges), "
            f'got "{detail}". Unset it when no graph files are wanted.'
        )
    folder = Path(environ.get(PATH, "").strip() or ".")
    return GeGraphSettings(int(detail), _stages(first_stage, last_stage, environ), folder, _formats(environ))


def _stages(first_stage: str, last_stage: str, environ: Mapping[str, str]) -> tuple[str, ...] | None:
    level = environ.get(LEVEL, "").strip() or _LISTED
    if level in (_ALL, _LISTED):
        return None
    if level in (_LAST, _FIRST):
        return (last_stage if level == _LAST else first_stage,)
    texts = tuple(text.strip() for text in level.split("|") if text.strip())
    if not any(text in stage for text in texts for stage in (first_stage, last_stage)):
        advice = did_you_mean(level, (first_stage, last_stage))
        raise ConfigError(
            f"environment variable {LEVEL}: expected 1 to 4, or parts of {first_stage} or {last_stage}, "
            f'got "{level}". {advice}'.rstrip()
        )
    return texts


def _formats(environ: Mapping[str, str]) -> tuple[str, ...]:
    text = environ.get(FORMAT, "").strip() or f"{PROTO}|{ONNX}"
    formats = tuple(dict.fromkeys(part.strip() for part in text.split("|") if part.strip()))
    for part in formats:
        if part not in (PROTO, ONNX):
            advice = did_you_mean(part, (PROTO, ONNX))
            raise ConfigError(
                f'environment variable {FORMAT}: expected {PROTO}, {ONNX} or both with "|" between, got "{part}". '
                f"{advice}".rstrip()
            )
    return formats
