"""Read a TorchAir graph dump in text form: which output of the FX graph each output of the GE graph is."""

from __future__ import annotations

import re
import warnings
from os import PathLike, fspath

from msdump.errors import FormatError
from msdump.plain_files import GRAPH_BYTES, read_plain

_ATTR = "_fx_tensor_name"
_FX_NAME = re.compile(r"(?P<node>[^-]+)-.+\.OUTPUT\.(?P<index>[0-9]{1,9})")


def read_ge_originals(path: str | PathLike[str]) -> tuple[str, dict[tuple[str, int], tuple[str, int]]]:
    """Name of the graph, and (operator, output) -> (FX node, output) of every output that is one of the FX graph.

    Edges:  fields that later versions add are skipped.
    Raises: FormatError when the file is no GraphDef text; OSError when it cannot be opened.
    Source: TorchAir graph dump, type txt; `_fx_tensor_name` of an `output_desc`.
    """
    from google.protobuf import text_format

    from msdump._proto import ge_ir_pb2

    graph = ge_ir_pb2.GraphDef()
    try:
        text = read_plain(path, GRAPH_BYTES).decode()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python warns of escapes that are none, which protobuf leaves to it
            text_format.Parse(text, graph, allow_unknown_field=True)
    except (text_format.ParseError, UnicodeDecodeError, RecursionError) as error:
        raise FormatError(f"{fspath(path)}: expected a GraphDef as text, got: {error}") from error
    found = {}
    for op in graph.op:
        for index, desc in enumerate(op.output_desc):
            match = _FX_NAME.fullmatch(desc.attr[_ATTR].s.decode(errors="replace")) if _ATTR in desc.attr else None
            if match is not None:
                found[str(op.name), index] = match["node"], int(match["index"])
    return str(graph.name), found
