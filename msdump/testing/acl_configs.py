"""Strategies of acl.json files: right ones, and wrong ones with the two numbers that each must give."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

Dump = dict[str, Any]
_NAMES = st.text("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_/-", min_size=1, max_size=12)
_STATISTICS = ("Max", "Min", "Avg", "Nan", "Negative Inf", "Positive Inf", "L2norm")
_SCENES = ("lite_exception", "aic_err_brief_dump", "aic_err_norm_dump", "aic_err_detail_dump")


# -- right ones -------------------------------------------------------------------------------------


def step_texts() -> st.SearchStrategy[str]:
    """Right values of `dump_step`; numbers may have zeros in front."""
    number = st.builds(lambda value, zeros: "0" * zeros + str(value), st.integers(0, 40), st.integers(0, 2))
    ends = st.lists(number, min_size=1, max_size=2).map(lambda texts: "-".join(sorted(texts, key=int)))
    return st.just("") | st.lists(ends, min_size=1, max_size=100).map("|".join)


def blacklists() -> st.SearchStrategy[list[Dump]]:
    """Values of a blacklist; some elements do nothing, which is no error."""
    position = st.builds(lambda io, slot: f"{io}{slot}", st.sampled_from(["input", "output"]), st.integers(0, 9))
    positions = st.lists(position | st.sampled_from(["", "input", "output-1", "Input0", "input٣"]), max_size=3)
    entry = st.fixed_dictionaries({}, optional={"name": _NAMES | st.just(""), "pos": positions})
    return st.lists(entry, max_size=4)


@st.composite
def list_items(draw: st.DrawFn, is_level_op: bool) -> Dump:
    """Elements of `dump_list`, as the values of an object."""
    item: Dump = draw(st.fixed_dictionaries({}, optional={"model_name": _NAMES, "layer": st.lists(_NAMES, min_size=1)}))
    if is_level_op:
        extra: Dump = draw(
            st.fixed_dictionaries({}, optional={"optype_blacklist": blacklists(), "opname_blacklist": blacklists()})
        )
        item.update(extra)
        if "model_name" in item and draw(st.booleans()):
            ends = st.fixed_dictionaries({"begin": _NAMES, "end": _NAMES})
            item["opname_range"] = draw(st.lists(ends, max_size=3))
    return item


@st.composite
def acl_dumps(draw: st.DrawFn, path: str) -> Dump:
    """Right `dump` sections, as the values of an object.

    path   an existing folder
    """
    kind = draw(st.sampled_from(["plain", "overflow", "watcher", "exception"]))
    dump: Dump = {"dump_path": path}
    if kind == "exception":
        dump["dump_scene"] = draw(st.sampled_from(_SCENES))
        return dump if draw(st.booleans()) else {"dump_scene": dump["dump_scene"]}
    if kind == "overflow":
        return {**dump, "dump_debug": "on"}
    optional: Dump = {"dump_step": step_texts(), "dump_kernel_data": st.sampled_from(["all", "printf,tensor"])}
    if kind == "watcher":
        names = st.lists(_NAMES, min_size=1, max_size=3)
        item = st.fixed_dictionaries({"watcher_nodes": names}, optional={"layer": names})
        drawn = draw(st.fixed_dictionaries({"dump_list": st.lists(item, max_size=2)}, optional=optional))
        return {**dump, **drawn, "dump_scene": "watcher"}
    level = draw(st.sampled_from(["op", "kernel", "all"]))
    optional["dump_mode"] = st.sampled_from(["input", "output", "all"])
    optional["dump_op_switch"] = st.sampled_from(["on", "off"])
    optional["dump_list"] = st.lists(list_items(level == "op"), max_size=3)
    drawn = draw(st.fixed_dictionaries({}, optional=optional))
    if draw(st.booleans()):
        drawn["dump_data"] = "stats"
        if draw(st.booleans()):
            drawn["dump_stats"] = draw(st.lists(st.sampled_from(_STATISTICS), min_size=1, unique=True))
    return {**dump, **drawn, "dump_level": level}


def acl_json_texts(path: str) -> st.SearchStrategy[str]:
    """Right files, with and without blanks."""
    indents = st.sampled_from([None, 1, 4])
    return st.builds(lambda dump, indent: json.dumps({"dump": dump}, indent=indent), acl_dumps(path), indents)


# -- wrong ones -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class AclMistake:
    """One thing that can be wrong with a `dump` section.

    row      where the rule stands: "A" types, "B" values, then the number of the constraint
    ep_code  that it must give, with aclError 100009
    item     the path that the message must name
    dump     the whole section; "{path}" stands for a folder that exists
    """

    row: str
    ep_code: str
    item: str
    dump: Dump

    def section(self, path: str) -> Dump:
        dump = copy.deepcopy(self.dump)
        if dump.get("dump_path") == "{path}":
            dump["dump_path"] = path
        return dump


def _dump(row: str, ep_code: str, item: str, **keys: Any) -> AclMistake:
    return AclMistake(row, ep_code, item, {"dump_path": "{path}", **keys})


def _listed(row: str, ep_code: str, item: str, *items: Any, **keys: Any) -> AclMistake:
    return _dump(row, ep_code, item, dump_list=list(items), **keys)


def _type_mistakes() -> list[AclMistake]:
    scalars = ("path", "mode", "op_switch", "level", "scene", "data", "debug", "kernel_data", "step")
    no_strings: tuple[Any, ...] = (1, None, [])
    no_lists: tuple[Any, ...] = ("a", {}, 0)
    mistakes = [
        _dump("A", "EP0001", f"dump_{key}", **{f"dump_{key}": wrong}) for key in scalars for wrong in no_strings
    ]
    mistakes += [_dump("A", "EP0001", key, **{key: wrong}) for key in ("dump_stats", "dump_list") for wrong in no_lists]
    mistakes += [
        _dump("A", "EP0001", "dump_stats[1]", dump_stats=["Max", 3]),
        _listed("A", "EP0001", "dump_list[1]", {}, "a"),
        _listed("A", "EP0001", "dump_list[0]", []),
        _listed("A", "EP0001", "dump_list[0].model_name", {"model_name": 5}),
        _listed("A", "EP0001", "dump_list[0].layer[1]", {"layer": ["a", 5]}),
        _listed("A", "EP0001", "dump_list[0].watcher_nodes[0]", {"watcher_nodes": [None]}),
        _listed("A", "EP0001", "dump_list[0].opname_range[0]", {"opname_range": ["a"]}),
        _listed("A", "EP0001", "dump_list[0].opname_range[0].begin", {"opname_range": [{"begin": 1}]}),
        _listed("A", "EP0001", "dump_list[0].opname_range[1].end", {"opname_range": [{}, {"end": []}]}),
    ]
    lists = ("layer", "watcher_nodes", "optype_blacklist", "opname_blacklist", "opname_range")
    mistakes += [_listed("A", "EP0001", f"dump_list[0].{key}", {key: "a"}) for key in lists]
    for key in ("optype_blacklist", "opname_blacklist"):
        where = f"dump_list[0].{key}[0]"
        mistakes += [
            _listed("A", "EP0001", where, {key: [1]}),
            _listed("A", "EP0001", f"{where}.name", {key: [{"name": 1}]}),
            _listed("A", "EP0001", f"{where}.pos", {key: [{"pos": "input0"}]}),
            _listed("A", "EP0001", f"{where}.pos[0]", {key: [{"pos": [0]}]}),
        ]
    return mistakes


def _value_mistakes() -> list[AclMistake]:
    keys = ("mode", "data", "op_switch", "level", "debug", "scene", "kernel_data")
    mistakes = [_dump("B", "EP0001", f"dump_{key}", **{f"dump_{key}": ""}) for key in keys]
    mistakes += [_dump("B", "EP0002", f"dump_{key}", **{f"dump_{key}": "ON"}) for key in keys]
    return mistakes + [
        _dump("B", "EP0002", "dump_kernel_data[1]", dump_kernel_data="printf,print"),
        _dump("B", "EP0001", "dump_kernel_data[1]", dump_kernel_data="printf,"),
        _dump("B", "EP0001", "dump_stats[0]", dump_stats=[""], dump_data="stats"),
        _dump("B", "EP0002", "dump_stats[1]", dump_stats=["Max", "max"], dump_data="stats"),
    ]


def _scene_mistakes() -> list[AclMistake]:
    mistakes = []
    for scene in (*_SCENES, "watcher"):
        mistakes += [
            _dump("1", "EP0005", "dump_debug", dump_scene=scene, dump_debug="on"),
            _dump("2", "EP0005", "dump_op_switch", dump_scene=scene, dump_op_switch="on"),
        ]
    return mistakes + [
        _dump("3", "EP0005", "dump_mode", dump_scene="watcher", dump_mode=mode) for mode in ("input", "all")
    ]


def _path_mistakes() -> list[AclMistake]:
    def of(row: str, ep_code: str, path: str) -> AclMistake:
        return _dump(row, ep_code, "dump_path", dump_path=path)

    return [
        AclMistake("4", "EP0001", "dump_path", {"dump_list": [{}]}),
        AclMistake("4", "EP0001", "dump_path", {"dump_debug": "on"}),
        of("5", "EP0001", ""),
        of("6", "EP0003", "/" + "a" * 512),
        of("7", "EP0003", "1.2.3.4:"),
        of("7", "EP0003", "x:"),
        of("8", "EP0003", "127.0.0.1:/a b"),
        of("8", "EP0003", "0.0.0.255:out~"),
        of("9", "EP0003", "/no/such/folder"),
        of("9", "EP0003", "256.0.0.1:out"),
        of("9", "EP0003", "1.2.3:out"),
        of("9", "EP0003", "/dev/null"),
        of("9", "EP0003", "a\0b"),
    ]


def _step_mistakes() -> list[AclMistake]:
    rows = [
        ("11", "dump_step", "|".join(["1"] * 101)),
        ("12", "dump_step[1]", "1|2-3-4"),
        ("12", "dump_step[0]", "1--2"),
        ("13", "dump_step[1]", "5||10"),
        ("13", "dump_step[1]", "5|"),
        ("13", "dump_step[0]", "-1"),
        ("13", "dump_step[0]", "two"),
        ("13", "dump_step[0]", "all"),
        ("13", "dump_step[1]", "0| 1"),
        ("13", "dump_step[0]", "٣"),
        ("14", "dump_step[0]", "5-4"),
        ("14", "dump_step[2]", "1|2|010-9"),
    ]
    return [_dump(row, "EP0003", item, dump_step=text) for row, item, text in rows]


def _list_mistakes() -> list[AclMistake]:
    black = [{"name": "a", "pos": ["input0"]}]
    ends = [{"begin": "a", "end": "b"}]
    watch: Dump = {"dump_scene": "watcher"}
    mistakes = [
        _dump("10", "EP0005", "dump_op_switch", dump_debug="on", dump_op_switch="on"),
        _listed("10", "EP0005", "dump_list", {}, dump_debug="on"),
        _listed("15", "EP0001", "dump_list[0].model_name", {"model_name": ""}),
        _listed("15", "EP0001", "dump_list[1].layer", {}, {"layer": []}, dump_op_switch="off"),
        _listed("16", "EP0001", "dump_list[0].watcher_nodes", {"layer": ["a"]}, **watch),
        _listed("16", "EP0001", "dump_list[0].watcher_nodes", {"watcher_nodes": []}, **watch),
        _listed("17", "EP0005", "dump_list[0].model_name", {"watcher_nodes": ["c"], "model_name": "m"}, **watch),
        _listed("18", "EP0005", "dump_list[0].watcher_nodes", {"watcher_nodes": ["c"]}),
        _listed("18", "EP0005", "dump_list[0].watcher_nodes", {"watcher_nodes": ["c"]}, dump_op_switch="on"),
        _listed("21", "EP0005", "dump_list[0].opname_range", {"model_name": "m", "opname_range": ends}),
        _listed("22", "EP0001", "dump_list[0].model_name", {"opname_range": ends}, dump_level="op"),
        _dump("24", "EP0001", "dump_stats", dump_stats=[], dump_data="stats"),
        _dump("24", "EP0001", "dump_stats", dump_stats=[]),
        _dump("25", "EP0005", "dump_stats", dump_stats=["Max"]),
        _dump("25", "EP0005", "dump_stats", dump_stats=["Max"], dump_data="tensor"),
    ]
    empty_name = {"model_name": "", "opname_range": ends}
    mistakes.append(
        _listed("22", "EP0001", "dump_list[0].model_name", empty_name, dump_level="op", dump_op_switch="on")
    )
    for wrong in ({"begin": "a"}, {"end": "a"}, {"begin": "", "end": "b"}, {"begin": "a", "end": ""}, {}):
        item = {"model_name": "m", "opname_range": [*ends, wrong]}
        mistakes.append(_listed("23", "EP0003", "dump_list[0].opname_range[1]", item, dump_level="op"))
    for key in ("optype_blacklist", "opname_blacklist"):
        mistakes += [
            _listed("19", "EP0003", f"dump_list[0].{key}", {key: black * 101}, dump_level="op"),
            _listed("20", "EP0005", f"dump_list[0].{key}", {key: black}),
            _listed("20", "EP0005", f"dump_list[0].{key}", {key: black}, dump_level="kernel"),
        ]
    return mistakes


# In the order of the checks as far as one section can have two mistakes.
ACL_MISTAKES: tuple[AclMistake, ...] = (
    *_type_mistakes(),
    *_value_mistakes(),
    *_scene_mistakes(),
    *_path_mistakes(),
    *_step_mistakes(),
    *_list_mistakes(),
)


def invalid_acl_dumps(path: str) -> st.SearchStrategy[tuple[Dump, AclMistake]]:
    """(`dump` section with one mistake and some unknown keys, the mistake)."""
    unread = st.dictionaries(st.sampled_from(["comment", "dumpmode", "dump_status"]), st.none() | st.integers())
    build: Callable[[AclMistake, Dump], tuple[Dump, AclMistake]] = lambda mistake, extra: (  # noqa: E731
        {**extra, **mistake.section(path)},
        mistake,
    )
    return st.builds(build, st.sampled_from(ACL_MISTAKES), unread)


@dataclass(frozen=True)
class AclFileMistake:
    """One thing that can be wrong with the file itself.

    acl_error  that it must give
    make       makes the file or what stands in its place, in a folder that exists; gives the path
    """

    name: str
    acl_error: int
    ep_code: str
    make: Callable[[str], str | None]


def _written(text: bytes) -> Callable[[str], str]:
    def make(folder: str) -> str:
        path = f"{folder}/acl.json"
        with open(path, "wb") as file:
            file.write(text)
        return path

    return make


def _nested(bracket: str, closing: str, depth: int) -> bytes:
    return (bracket * depth + closing * depth).encode()


ACL_FILE_MISTAKES: tuple[AclFileMistake, ...] = (
    AclFileMistake("null", 100000, "EP0007", lambda folder: None),
    AclFileMistake("no such file", 100003, "EP0004", lambda folder: f"{folder}/none.json"),
    AclFileMistake("no name", 100003, "EP0004", lambda folder: ""),
    AclFileMistake("zero in the name", 100003, "EP0004", lambda folder: f"{folder}/a\0b"),
    AclFileMistake("folder", 100003, "EP0004", lambda folder: folder),
    AclFileMistake("device", 100003, "EP0004", lambda folder: "/dev/null"),
    AclFileMistake("too large", 100003, "EP0004", _written(b"{}" + b" " * ((10 << 20) - 1))),
    AclFileMistake("objects too deep", 100006, "EP0004", _written(b'{"a":' * 10 + b"{}" + b"}" * 10)),
    AclFileMistake("arrays too deep", 100006, "EP0004", _written(_nested("[", "]", 11))),
    AclFileMistake("braces in a string", 100006, "EP0004", _written(b'{"a":"' + b"{" * 10 + b'"}')),
    AclFileMistake("cut short", 100009, "EP0004", _written(b'{"dump": {')),
    AclFileMistake("blank", 100009, "EP0004", _written(b" \n")),
    AclFileMistake("comment", 100009, "EP0004", _written(b"{} // no")),
    AclFileMistake("single quotes", 100009, "EP0004", _written(b"{'dump': {}}")),
    AclFileMistake("comma in an object", 100009, "EP0004", _written(b'{"dump": {"dump_mode": "input",\n}}')),
    AclFileMistake("comma in a list", 100009, "EP0004", _written(b'{"dump": {"dump_list": [{},]}}')),
    AclFileMistake("no UTF-8", 100009, "EP0004", _written(b'{"dump": "\xff"}')),
)
