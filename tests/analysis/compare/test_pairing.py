"""Which operator is which: names, scopes, types and shapes, chains, mapping files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import msdump
from msdump.analysis.compare.mapping import OperatorMap, read_mapping
from msdump.analysis.compare.pairing import Pairing, pair_operators
from msdump.analysis.compare.step_pairs import pair_steps
from msdump.analysis.steps import Operator, Slot, Step, StepKey, read_steps
from msdump.errors import ConfigError
from msdump.formats.dump_tensor import DumpedFile, DumpedTensor
from msdump.formats.paths.parse import DumpName, FolderLevels
from tests.analysis.small_dump import floats, write_dump

OUT, IN = ("output", 0), ("input", 0)


def operators(root: Path, names: list[tuple[str, Any]]) -> tuple[Operator, ...]:
    (step,) = read_steps(msdump.open(write_dump(root, names)))
    return step.operators


def named(pairing: Pairing) -> dict[str, str]:
    return {pair.mine.op_name: pair.golden.op_name for pair in pairing.pairs}


def test_numbers_of_operators_that_shift_do_not_mislead(tmp_path: Path) -> None:
    x = floats(1, 2)
    mine = operators(tmp_path / "a", [("D/a/Add-op1", {OUT: x}), ("D/b/Add-op2", {OUT: x}), ("D/c/Mul-op3", {OUT: x})])
    golden = operators(
        tmp_path / "b", [("D/a/Add-op2", {OUT: x}), ("D/b/Add-op3", {OUT: x}), ("D/c/Mul-op4", {OUT: x})]
    )
    pairing = pair_operators(mine, golden)
    assert named(pairing) == {"Add-op1": "Add-op2", "Add-op2": "Add-op3", "Mul-op3": "Mul-op4"}
    assert {pair.how for pair in pairing.pairs} == {"scope"}
    assert {pair.how for pair in pair_operators(mine, mine).pairs} == {"name"}


def test_type_shape_and_order_when_scopes_differ(tmp_path: Path) -> None:
    small, large = floats(1, 2), floats(1, 2, 3)
    mine = operators(
        tmp_path / "a", [("A/Add-op1", {OUT: small}), ("A/Add-op2", {OUT: large}), ("A/Add-op3", {OUT: small})]
    )
    golden = operators(
        tmp_path / "b", [("B/Add-op7", {OUT: small}), ("B/Add-op8", {OUT: small}), ("B/Add-op9", {OUT: large})]
    )
    pairing = pair_operators(mine, golden)
    assert named(pairing) == {"Add-op1": "Add-op7", "Add-op2": "Add-op9", "Add-op3": "Add-op8"}
    assert [pair.mine.op_name for pair in pairing.pairs] == ["Add-op1", "Add-op2", "Add-op3"]


@pytest.mark.parametrize("scopes", ["AA", "AB"])
def test_the_very_shape_comes_before_one_of_as_many_elements(tmp_path: Path, scopes: str) -> None:
    flat, batched = np.ones((3, 2), np.float32), np.ones((1, 3, 2), np.float32)
    mine = operators(tmp_path / "a", [(f"{scopes[0]}/Add-op1", {IN: flat, OUT: flat})])
    golden = operators(
        tmp_path / "b",
        [
            (f"{scopes[1]}/Add-op7", {IN: batched, OUT: batched}),
            (f"{scopes[1]}/Add-op8", {IN: flat, OUT: flat}),
            (f"{scopes[1]}/Mul-op9", {OUT: flat}),
            (f"{scopes[1]}/Neg-op9", {OUT: flat}),
        ],
    )
    assert named(pair_operators(mine, golden)) == {"Add-op1": "Add-op8"}


def test_a_fused_operator_is_its_chain_on_either_side(tmp_path: Path) -> None:
    x, w, b = np.ones((2, 3), np.float32), np.ones((3, 4), np.float32), np.arange(4, dtype=np.float32)
    product, biased = x @ w, x @ w + b
    fused = operators(tmp_path / "a", [
        ("D/FusedDense-op1", {("input", 0): x, ("input", 1): w, ("input", 2): b, OUT: biased}),
        ("D/MatMul-op2", {("input", 0): x, ("input", 1): w, OUT: product}),
    ])  # fmt: skip
    parts = operators(tmp_path / "b", [
        ("D/MatMul-op1", {("input", 0): x, ("input", 1): w, OUT: product}),
        ("D/BiasAdd-op2", {("input", 0): product, ("input", 1): b, OUT: biased}),
        ("D/MatMul-op3", {("input", 0): x, ("input", 1): w, OUT: product}),
        ("D/Flatten-op4", {("input", 0): x, OUT: x}),
    ])  # fmt: skip
    mapping = OperatorMap({"FusedDense": ("MatMul", "BiasAdd"), "Flatten": ()})
    for mine, golden in ((fused, parts), (parts, fused)):
        pairing = pair_operators(mine, golden, mapping)
        assert not pairing.only_mine and not pairing.only_golden
        assert [operator.op_type for operator in pairing.expected] == ["Flatten"]
        chained = next(pair for pair in pairing.pairs if pair.how == "mapping")
        shapes = {side.input_shapes for side in (chained.mine, chained.golden)}
        assert shapes == {((2, 3), (3, 4), (4,))}
        assert "MatMul-op1 + BiasAdd-op2" in (chained.mine.op_name, chained.golden.op_name)


def test_a_chain_follows_the_bytes_not_only_the_shapes(tmp_path: Path) -> None:
    a, b = floats(1, 2), floats(3, 4)
    parts = operators(tmp_path / "b", [
        ("D/Mul-op1", {IN: a, OUT: b}),
        ("D/Add-op2", {IN: a, OUT: a}),
        ("D/Add-op3", {IN: b, OUT: a}),
    ])  # fmt: skip
    fused = operators(tmp_path / "a", [("D/MulAdd-op1", {IN: a, OUT: a})])
    (pair,) = pair_operators(fused, parts, OperatorMap({"MulAdd": ("Mul", "Add")})).pairs
    assert pair.golden.op_name == "Mul-op1 + Add-op3"


def test_a_chain_may_read_more_than_the_operator_that_it_stands_for(tmp_path: Path) -> None:
    x, w, b, y = floats(*range(6)), floats(*range(12)), floats(1, 2), floats(3, 4)
    scale, zero = np.array(0.5, np.float32), np.array(3, np.uint8)
    whole = operators(tmp_path / "a", [("D/Gemm-op1", {("input", 0): x, ("input", 1): w, ("input", 2): b, OUT: y})])
    parts = operators(tmp_path / "b", [
        ("D/Quantize-op1", {("input", 0): x, ("input", 1): scale, ("input", 2): zero, OUT: x}),
        ("D/Dequantize-op2", {("input", 0): x, ("input", 1): scale, ("input", 2): zero, OUT: x}),
        ("D/Gemm-op3", {("input", 0): x, ("input", 1): w, ("input", 2): b, OUT: y}),
    ])  # fmt: skip
    mapping = OperatorMap({"Gemm": ("Quantize", "Dequantize", "Gemm")})
    for mine, golden in ((whole, parts), (parts, whole)):
        (pair,) = pair_operators(mine, golden, mapping).pairs
        assert pair.mine.input_shapes == pair.golden.input_shapes == ((6,), (12,), (2,))


def test_single_operators_by_name_from_a_mapping_file(tmp_path: Path) -> None:
    x = floats(1, 2)
    mine = operators(tmp_path / "a", [("D/Relu-op1", {OUT: x})])
    golden = operators(tmp_path / "b", [("D/ReLU-op5", {OUT: x})])
    assert not pair_operators(mine, golden).pairs
    for mapping in (OperatorMap({"Relu": ("ReLU",)}), OperatorMap({}, {"Relu-op1": ("D/ReLU-op5",)})):
        assert named(pair_operators(mine, golden, mapping)) == {"Relu-op1": "ReLU-op5"}


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_every_operator_is_in_one_place_and_an_equal_side_pairs_whole(data: st.DataObject) -> None:
    def side(count: int) -> list[Operator]:
        kinds = st.tuples(st.sampled_from(["Add", "Mul", "Parameter"]), st.integers(0, 9))
        drawn = data.draw(st.lists(kinds, min_size=count, max_size=count))
        return [Operator(op_type, f"{op_type}-op{number}", f"D/{op_type}-op{number}") for op_type, number in drawn]

    mine, golden = side(data.draw(st.integers(0, 6))), side(data.draw(st.integers(0, 6)))
    pairing = pair_operators(mine, golden)
    assert sorted(map(id, [*(pair.mine for pair in pairing.pairs), *pairing.only_mine])) == sorted(map(id, mine))
    assert sorted(map(id, [*(pair.golden for pair in pairing.pairs), *pairing.only_golden])) == sorted(map(id, golden))
    whole = pair_operators(mine, mine)
    assert not whole.only_mine and not whole.only_golden
    back = pair_operators(golden, mine)
    assert len(back.pairs) == len(pairing.pairs)


def test_steps_meet_by_key_then_by_iteration_then_alone() -> None:
    def steps(*keys: tuple[int, int, int]) -> list[Step]:
        return [Step(StepKey(*key), ()) for key in keys]

    def keys(found: list[tuple[Step, Step]]) -> list[tuple[Any, Any]]:
        return [(tuple(one.key), tuple(other.key)) for one, other in found]

    assert keys(pair_steps(steps((0, 0, 1), (0, 0, 2)), steps((0, 0, 2), (0, 0, 3)))) == [((0, 0, 2), (0, 0, 2))]
    assert keys(pair_steps(steps((0, 1, 0), (0, 1, 1)), steps((0, 7, 0), (0, 7, 1)))) == [
        ((0, 1, 0), (0, 7, 0)),
        ((0, 1, 1), (0, 7, 1)),
    ]
    assert keys(pair_steps(steps((0, 0, 5)), steps((1, 2, 9)))) == [((0, 0, 5), (1, 2, 9))]
    assert pair_steps(steps((0, 0, 0), (0, 0, 1)), steps((1, 1, 5), (1, 1, 6))) == []
    assert pair_steps(steps((0, 0, 0), (1, 0, 0)), steps((2, 0, 0), (3, 0, 0))) == []


@given(
    places=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), unique=True, max_size=9),
    others=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), unique=True, max_size=9),
    ranks=st.tuples(st.none() | st.integers(0, 9), st.none() | st.integers(0, 9)),
)
def test_two_single_ranks_belong_together(
    places: list[tuple[int, int]], others: list[tuple[int, int]], ranks: tuple[int | None, int | None]
) -> None:
    def pairs(rank: int | None, other: int | None) -> list[tuple[int | None, ...]]:
        mine = [Step(StepKey(rank, *place), ()) for place in places]
        golden = [Step(StepKey(other, *place), ()) for place in others]
        found = pair_steps(mine, golden)
        assert {id(two) for _, two in found} <= set(map(id, golden))
        return [(*one.key[1:], *two.key[1:]) for one, two in found]

    assert pairs(*ranks) == pairs(0, 0)


# (operators of each graph of a process, each named after what it computes), (how many steps each ran)
graphs_of_a_process = st.lists(st.frozensets(st.sampled_from("abcdefgh"), min_size=1), min_size=2, max_size=6)


@given(
    graphs=graphs_of_a_process,
    first=st.integers(0, 9),
    other=st.integers(0, 9),
    ranks=st.tuples(st.integers(0, 2), st.integers(0, 2)),
)
def test_graphs_that_a_process_numbers_are_told_by_their_operators(
    graphs: list[frozenset[str]], first: int, other: int, ranks: tuple[int, int]
) -> None:
    def steps(start: int, rank: int) -> list[Step]:
        return [
            Step(StepKey(rank, start + at, step), tuple(Operator(name, name) for name in sorted(names)), at * 10 + step)
            for at, names in enumerate(graphs)
            for step in range(2)
        ]

    found = pair_steps(steps(first, ranks[0]), steps(other, ranks[1]))
    assert [(one.key, two.key) for one, two in found] == [
        (StepKey(ranks[0], first + at, step), StepKey(ranks[1], other + at, step))
        for at in range(len(graphs))
        for step in range(2)
    ] or len(set(graphs)) < len(graphs)
    # Of alike graphs any may be meant, but each step meets one, and one with the same operators.
    assert len(found) == 2 * len(graphs)
    for one, two in found:
        assert one.key.iteration == two.key.iteration
        assert {operator.op_name for operator in one.operators} == {operator.op_name for operator in two.operators}


def test_a_graph_that_only_one_run_has_meets_none() -> None:
    def steps(*graphs: tuple[int, str]) -> list[Step]:
        return [
            Step(StepKey(0, graph, 0), tuple(Operator(name, name) for name in names), at)
            for at, (graph, names) in enumerate(graphs)
        ]

    found = pair_steps(steps((1, "abc"), (2, "xyz")), steps((2, "abd"), (1, "pq")))
    assert [(one.key.graph_id, two.key.graph_id) for one, two in found] == [(1, 2)]


def test_json_and_csv_say_the_same(tmp_path: Path) -> None:
    (tmp_path / "m.json").write_text(
        json.dumps({"types": {"A": ["B", "C"], "D": "E", "F": []}, "ignore": ["X:input:1", "Y:output"]})
    )
    (tmp_path / "m.csv").write_text("mine,golden\n# fused\nA,B,C\nD,E\n\nF\n")
    from_json, from_csv = read_mapping(tmp_path / "m.json"), read_mapping(tmp_path / "m.csv")
    assert from_json.types == from_csv.types == {"A": ("B", "C"), "D": ("E",), "F": ()}
    assert from_json.ignores(frozenset({"X"}), "input", 1) and not from_json.ignores(frozenset({"X"}), "input", 0)
    assert from_json.ignores(frozenset({"Y"}), "output", 7)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("m.json", "[1]", "expected an object"),
        ("m.json", "{", "expected json"),
        ("m.json", "[" * 100_000, "expected json"),
        ("m.json", '{"type": {}}', 'Did you mean "types"'),
        ("m.json", '{"types": {"A": [1]}}', "types.A: expected a name"),
        ("m.json", '{"ignore": ["A"]}', "ignore: expected entries"),
        ("m.csv", "A,,B\n", "line 1: expected a name in every cell"),
        ("m.csv", '"A', "expected csv"),
        ("m.csv", None, "expected a mapping file"),
    ],
)
def test_wrong_mapping_files_say_where(tmp_path: Path, name: str, text: str | None, message: str) -> None:
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(ConfigError, match=message):
        read_mapping(tmp_path / name)


def operator_in_memory(name: str, op_type: str, size: int) -> Operator:
    place = FolderLevels()
    file = DumpedFile(f"/{name}", place, DumpName("npy", op_type, name, io="output", slot=0), name)
    return Operator(op_type, name, outputs={Slot(0): DumpedTensor(file, "output", 0, "float32", (size,), "ND", 0, 0)})


@given(st.lists(st.tuples(st.integers(1, 2), st.integers(1, 2)), max_size=12), st.randoms(), st.integers(0, 3))
def test_the_order_of_the_other_side_changes_no_pair_of_names(sizes: Any, random: Any, missing: int) -> None:
    mine, golden = (
        [operator_in_memory(f"op{number}", f"T{number}", pair[side]) for number, pair in enumerate(sizes)]
        for side in range(2)
    )
    kept = golden[missing:]
    expected = pair_operators(mine, kept)
    random.shuffle(kept)
    found = pair_operators(mine, kept)
    assert [(pair.mine, pair.golden, pair.how) for pair in found.pairs] == [
        (pair.mine, pair.golden, pair.how) for pair in expected.pairs
    ]
    assert found.only_mine == expected.only_mine and set(found.only_golden) == set(expected.only_golden)
