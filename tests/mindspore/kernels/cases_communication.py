"""Cases of the collective operators, in a process that is alone."""

from __future__ import annotations

from tests.mindspore.kernels.cases import Case, bools, case, ints, reals

CASES: dict[str, list[Case]] = {
    "Reduce": [case(reals(2, 2), op="sum", dest_rank=0), case(ints(0, 4, 3), op="max", dest_rank=0)],
    "ReduceScatter": [case(reals(2, 2), op="sum", rank_size=1)],
    "AllGather": [case(reals(2, 2), rank_size=1), case(bools(3), rank_size=1)],
    "AlltoAll": [case(reals(2, 2), split_count=1, split_dim=0, concat_dim=1)],
    "Broadcast": [case(reals(2, 2), root_rank=0), case(reals(), root_rank=0)],
    "Barrier": [case()],
}
