"""Atc: ATC's options for a model's open sizes, with which it made the `.om` file that a script was written for.

The options stand in a file beside the model, `net.atc` for `net.onnx`, or under the key `atc` of the model's metadata,
as they stood on the command line:

    --input_shape="data:-1,3,224,224" --dynamic_batch_size="1,2,4,8"

Source: ATC, `--input_shape`, `--dynamic_batch_size`, `--dynamic_image_size`, `--dynamic_dims`.
"""

from __future__ import annotations

import logging
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from msdump.errors import FormatError, did_you_mean
from msdump.frontends.acl import codes
from msdump.frontends.acl.calls import CallError
from msdump.frontends.acl.operand import ModelOperand, Shape
from msdump.frontends.acl.tensor_desc import UNKNOWN
from msdump.storage.plain import CONFIG_BYTES, read_plain

log = logging.getLogger("msdump")

BATCH, IMAGE, DIMS = "dynamic_batch_size", "dynamic_image_size", "dynamic_dims"
METADATA_KEY = "atc"
_SHAPE = "input_shape"
_GEAR_KINDS = (BATCH, IMAGE, DIMS)
# They say where files are and which chip compiles, or how axes are called.
_WITHOUT_EFFECT = frozenset(("model", "weight", "framework", "output", "soc_version", "input_format", "log", "mode"))
# They give the `.om` file other inputs or outputs than the `.onnx` file has.
_REFUSED = frozenset(("insert_op_conf", "out_nodes", "output_type", "input_fp16_nodes", "input_shape_range"))
_MOST_GEARS = 100
# Sizes of a tensor that memory can have.
_LARGEST = 2**31 - 1
_SIZE = re.compile(r"(-1|[0-9]{1,10})(?:~(-1|[0-9]{1,10}))?")


@dataclass(frozen=True)
class Atc:
    """Options of one model.

    shapes   input -> (least, most) of each size, where most is -1 for an open one
    kind     which option has the gears; "" without gears
    gears    sizes of the open dimensions, in the order of the inputs: the choices that the model was compiled for
    """

    shapes: Mapping[str, tuple[tuple[int, int], ...]] = field(default_factory=dict)
    kind: str = ""
    gears: tuple[Shape, ...] = ()

    def operands(self, declared: Sequence[ModelOperand], where: str) -> tuple[ModelOperand, ...]:
        """The inputs with the sizes that the options give them.   Raises: CallError 100013 where these do not fit."""
        names = [operand.name for operand in declared]
        for name in self.shapes:
            if name not in names:
                raise refusal(where, _SHAPE, f"one of {', '.join(names)}", name, did_you_mean(name, names))
        operands = tuple(self._operand(operand, where) for operand in declared)
        if self.kind:
            self._check_gears(operands, where)
        return operands

    def gear_shapes(self, inputs: Sequence[ModelOperand], gear: Shape) -> list[Shape]:
        """Shapes of all inputs in one gear."""
        if self.kind == BATCH:
            return [tuple(gear[0] if size < 0 else size for size in operand.shape) for operand in inputs]
        if self.kind == IMAGE:
            return [_filled(operand.shape, iter(gear)) if operand.is_dynamic else operand.shape for operand in inputs]
        sizes = iter(gear)
        return [_filled(operand.shape, sizes) for operand in inputs]

    def largest_gears(self) -> tuple[Shape, ...]:
        """The gears that no other one covers: every tensor is largest in one of them."""
        return tuple(
            gear for gear in self.gears if not any(gear != larger and _covers(larger, gear) for larger in self.gears)
        )

    def _operand(self, operand: ModelOperand, where: str) -> ModelOperand:
        sizes = self.shapes.get(operand.name)
        if sizes is None:
            return operand
        fits = len(sizes) == len(operand.shape) and all(
            size == UNKNOWN or least == most == size for (least, most), size in zip(sizes, operand.shape, strict=True)
        )
        if not fits:
            got = ",".join(str(least) if least == most else f"{least}~{most}" for least, most in sizes)
            raise refusal(where, _SHAPE, f"a shape for {operand.name} that {operand} allows", got)
        shape = tuple(least if least == most else UNKNOWN for least, most in sizes)
        return ModelOperand(operand.name, operand.dtype, shape, tuple(sizes))

    def _check_gears(self, inputs: Sequence[ModelOperand], where: str) -> None:
        open_axes = [[axis for axis, size in enumerate(operand.shape) if size < 0] for operand in inputs]
        count = sum(map(len, open_axes))
        fits = {
            BATCH: count > 0 and all(axis == 0 for axes in open_axes for axis in axes),
            IMAGE: count > 0 and all(len(axes) in (0, 2) for axes in open_axes),
            DIMS: count > 0 and all(len(gear) == count for gear in self.gears),
        }[self.kind]
        if not fits:
            expected = {
                BATCH: "inputs whose first size alone is open",
                IMAGE: "inputs with two open sizes, height and width",
                DIMS: f"{count} sizes in each gear, one for each open size",
            }[self.kind]
            raise refusal(where, self.kind, expected, ", ".join(f"{operand.name} {operand}" for operand in inputs))


def atc_of(source: str | bytes, metadata: Mapping[str, str]) -> tuple[Atc, str]:
    """The options of a model, and where they stand; none for most models.   Raises: CallError 100013."""
    if isinstance(source, str):
        path = Path(source).with_suffix(".atc")
        try:
            return parse_atc(read_plain(path, CONFIG_BYTES).decode(), str(path)), str(path)
        except (FileNotFoundError, NotADirectoryError):
            pass
        except (OSError, UnicodeDecodeError, FormatError) as error:
            raise CallError(codes.PARSE_MODEL, f"{path}: expected ATC's options as text, got: {error}") from error
    where = f"metadata {METADATA_KEY}"
    return parse_atc(metadata.get(METADATA_KEY, ""), where), where


def parse_atc(text: str, where: str) -> Atc:
    """Options as on ATC's command line; the word `atc` before them and lines that go on behind a `\\` are fine.

    Raises: CallError 100013 for an option that does not hold, and for one that gives a model other inputs or outputs.
    """
    options = _options(text, where)
    kinds = [kind for kind in _GEAR_KINDS if kind in options]
    if len(kinds) > 1:
        raise refusal(where, kinds[1], f"no other option of gears beside {kinds[0]}", options[kinds[1]])
    for name in options:
        if name in _REFUSED:
            raise refusal(
                where,
                name,
                "options that leave inputs and outputs as the .onnx file has them",
                options[name],
                "Put it into the model itself, and take the option out.",
            )
        if name not in (_SHAPE, *_GEAR_KINDS, *_WITHOUT_EFFECT):
            log.warning("%s: --%s has no effect here.", where, name)
    shapes = _shapes(options[_SHAPE], where) if _SHAPE in options else {}
    if not kinds:
        return Atc(shapes)
    return Atc(shapes, kinds[0], _gears(kinds[0], options[kinds[0]], where))


def refusal(where: str, option: str, expected: str, got: str, fix: str = "") -> CallError:
    """Error 100013 for one option."""
    return CallError(codes.PARSE_MODEL, f"{where}: --{option}: expected {expected}, got {got}. {fix}".rstrip())


# -- parts ------------------------------------------------------------------------------------------


def _options(text: str, where: str) -> dict[str, str]:
    try:
        words = shlex.split(text.replace("\\\n", " "), comments=True)
    except ValueError as error:
        raise CallError(codes.PARSE_MODEL, f"{where}: expected ATC's options, got a text with {error}") from error
    if words[:1] == ["atc"]:
        del words[0]
    options: dict[str, str] = {}
    waiting = iter(words)
    for word in waiting:
        name, has_value, value = word.removeprefix("--").partition("=")
        if not word.startswith("--"):
            raise CallError(codes.PARSE_MODEL, f'{where}: expected options such as --{BATCH}="1,2", got {word}')
        options[name] = value if has_value else next(waiting, "")
    return options


def _shapes(text: str, where: str) -> dict[str, tuple[tuple[int, int], ...]]:
    """Edges: a name may hold colons; a shape does not."""
    shapes = {}
    for part in filter(None, map(str.strip, text.split(";"))):
        name, colon, sizes = part.rpartition(":")
        matches = [_SIZE.fullmatch(size.strip()) for size in sizes.split(",")] if sizes.strip() else []
        if not colon or not all(matches):
            raise refusal(where, _SHAPE, '"name:1,3,224,224;name2:-1,10"', part)
        shapes[name.strip()] = tuple(_ends(match[1], match[2]) for match in matches if match is not None)
    return shapes


def _ends(least: str, most: str | None) -> tuple[int, int]:
    """ "-1" -> (1, -1), "3" -> (3, 3), "1~10" -> (1, 10)."""
    if least == "-1":
        return 1, UNKNOWN
    return int(least), int(least if most is None else most)


def _gears(kind: str, text: str, where: str) -> tuple[Shape, ...]:
    count = {BATCH: 1, IMAGE: 2, DIMS: 0}[kind]
    examples = {BATCH: "1,2,4", IMAGE: "224,224;448,448", DIMS: "1,224;8,448"}
    pieces = text.split("," if kind == BATCH else ";")
    texts = [tuple(piece.split(",")) for piece in pieces if piece.strip()]
    try:
        gears = tuple(dict.fromkeys(tuple(map(int, text)) for text in texts))
    except ValueError:
        gears = ()
    is_right = gears and all(
        len(gear) == (count or len(gear)) and 0 < min(gear) <= max(gear) <= _LARGEST for gear in gears
    )
    if not is_right or len(gears) > _MOST_GEARS:
        raise refusal(where, kind, f'1 to {_MOST_GEARS} gears such as "{examples[kind]}"', text)
    return gears


def _filled(shape: Shape, sizes: Iterator[int]) -> Shape:
    return tuple(next(sizes) if size < 0 else size for size in shape)


def _covers(larger: Shape, gear: Shape) -> bool:
    return len(larger) == len(gear) and all(a >= b for a, b in zip(larger, gear, strict=True))
