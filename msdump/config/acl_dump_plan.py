"""What acl.json asks for, as the plan of the dump engines."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msdump.config.acl_plan import AclPlan
from msdump.config.plan import EXCEPTION_MODE, DumpPlan
from msdump.config.sections import ASCEND, ASYNC, DUMP_ALL, DUMP_LISTED, OVERFLOW_ALL
from msdump.config.selectors import FullNameSelector

_CATEGORY_BY_STATISTIC = {
    "Max": "max",
    "Min": "min",
    "Avg": "avg",
    "Nan": "nan count",
    "Negative Inf": "negative inf count",
    "Positive Inf": "positive inf count",
    "L2norm": "l2norm",
}


def dump_plan_of(
    plan: AclPlan, model_name: str, op_names: Sequence[str] | None, root: Path, device_id: int = 0
) -> DumpPlan:
    """The same wish in the words of the dump engines, for one model.

    op_names  chosen operators; None = all of them
    root      where the dump goes; for an exception dump the environment has a say
    """
    return DumpPlan(
        engine=ASYNC,
        path=root,
        net_name=model_name,
        iterations=plan.iterations,
        saves_tensor=not plan.statistics,
        saves_statistic=bool(plan.statistics),
        dumps_input=plan.dumps_input,
        dumps_output=plan.dumps_output,
        selectors=None if op_names is None else tuple(map(FullNameSelector, op_names)),
        dump_mode=DUMP_ALL if op_names is None else DUMP_LISTED,
        trans_flag=False,
        file_format="bin",
        op_debug_mode=OVERFLOW_ALL if plan.is_overflow else EXCEPTION_MODE if plan.is_exception else 0,
        overflow_number=0,
        statistic_categories=tuple(_CATEGORY_BY_STATISTIC[name] for name in plan.statistics) or None,
        device_target=ASCEND,
        device_id=device_id,
        rank_id=0,
        is_device_enabled=True,
        config_text=plan.config_text,
        config_path=plan.config_path,
        is_strict=False,
    )
