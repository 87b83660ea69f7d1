"""Names of folders and files of other tools: ranks, iterations and what a tensor is called."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msdump.formats.other_tools.layouts import FileName, Place, parse_file_name, place_of_folder, ranks_of, side_of

NAMES = st.text(min_size=1, max_size=12).map(lambda text: text.replace("/", "_").replace("\0", "_"))


@pytest.mark.parametrize(
    ("folder", "place"),
    [
        ("", Place()),
        ("enc/layer", Place(scope="enc/layer")),
        ("rank_3/step_5", Place(3, 5)),
        ("run/rank0/global_step_12/fwd", Place(0, 12, "run/fwd")),
        ("iteration_7", Place(iteration=7)),
        ("tllm_debug/PP_0/TP_1/iteration_4", Place(iteration=4, parallel=(0, 1))),
        ("PP_0/TP_1", Place(parallel=(0, 1))),
        ("TP1_PP0_Rank1_pid55", Place(1)),
        ("sglang_dump_1772746622.1748765", Place()),
        ("dump_20260101_120000_123456", Place()),
        ("ranks/step", Place(scope="ranks/step")),
    ],
)
def test_folders(folder: str, place: Place) -> None:
    assert place_of_folder("/root", f"/root/{folder}".rstrip("/")) == place


def test_the_folders_above_the_one_that_was_opened_say_nothing() -> None:
    assert place_of_folder("/rank_3/step_5", "/rank_3/step_5/a") == Place(scope="a")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("acts.pt", FileName("acts")),
        ("acts_step3.pt", FileName("acts", iteration=3)),
        ("acts_rank1_step3.pt", FileName("acts", 1, 3)),
        ("Pass00012.pt", FileName("", iteration=12)),
        ("step=3___rank=1___dump_index=9___name=attn.pt", FileName("attn", 1, 3, 9, True)),
        (
            "step=3___rank=1___dump_index=9___name=a__b___recompute_status=disabled___layer_id=4___tp_rank=1.pt",
            FileName("a__b/layer_id=4", 1, 3, 9, True),
        ),
        (
            "forward_pass_id=2___rank=0___name=x___y___dump_index=7___recompute_status=original.pt",
            FileName("x___y/recompute_status=original", 0, 2, 7, True),
        ),
        ("name=x.pt", FileName("name=x")),
    ],
)
def test_files(name: str, said: FileName) -> None:
    assert parse_file_name(name, may_hold_many=True) == said


def test_a_step_at_the_end_of_a_tensor_s_own_name_is_part_of_it() -> None:
    assert parse_file_name("noise_step3.npy", may_hold_many=False) == FileName("noise_step3")


@given(NAMES, st.booleans())
def test_any_name_says_something(name: str, may_hold_many: bool) -> None:
    said = parse_file_name(f"{name}.pt", may_hold_many)
    assert said.base or said.rank is not None or said.iteration is not None
    assert place_of_folder("/r", f"/r/{name}") is not None


@pytest.mark.parametrize(
    ("pairs", "ranks"),
    [
        ([(0, 0), (0, 1)], {(0, 0): 0, (0, 1): 1}),
        ([(0, 0), (0, 1), (1, 0), (1, 1)], {(0, 0): 0, (0, 1): 1, (1, 0): 2, (1, 1): 3}),
        ([(0, 1)], {(0, 1): 1}),
        ([(1, 2)], {(1, 2): None}),
        ([(1, 1), (1, 2)], {(1, 1): 0, (1, 2): 1}),
    ],
)
def test_ranks_of_tensorrt_llm(pairs: list[tuple[int, int]], ranks: dict[tuple[int, int], int | None]) -> None:
    assert ranks_of(pairs) == ranks


@pytest.mark.parametrize(
    ("name", "side"),
    [
        ("fc1", ("fc1", "output", 0)),
        ("fc1.input", ("fc1", "input", 0)),
        ("fc1/inputs/2", ("fc1", "input", 2)),
        ("fc1.output.1", ("fc1", "output", 1)),
        ("input", ("input", "output", 0)),
        ("fc1_output", ("fc1_output", "output", 0)),
    ],
)
def test_sides(name: str, side: tuple[str, str, int]) -> None:
    assert side_of(name) == side
