"""Guards of PyTorch around calls of a model: msdump changes nothing that they restore, and loses nothing after them."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from torch.utils._python_dispatch import _get_current_dispatch_mode_stack, _pop_mode  # noqa: E402

import msdump  # noqa: E402
from msdump.config.environment import NATIVE  # noqa: E402
from msdump.frontends.torch.eager.native import why_not_native  # noqa: E402
from tests.frontends.torch.eager.guarded_programs import PROGRAMS  # noqa: E402
from tests.frontends.torch.eager.guards import (  # noqa: E402
    BLOCKS,
    CALLS,
    DECORATORS,
    PLACES,
    STEPS,
    OtherMode,
    calls,
    decorated,
    evaluation,
    in_block,
    small_model,
    training,
)
from tests.frontends.torch.eager.native_rows import rows  # noqa: E402
from tests.frontends.torch.eager.test_watch import config  # noqa: E402

pytestmark = [
    # What PyTorch says of its own functions.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf"),
    pytest.mark.filterwarnings("ignore:There is a performance drop because we have not yet implemented"),
]
PARTS = {"evaluation": evaluation, "training": training}


@pytest.fixture(params=["mode", "native"], autouse=True)
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "mode":
        monkeypatch.setenv(NATIVE, "0")
    elif why_not_native():
        pytest.skip(why_not_native())
    return str(request.param)


@contextlib.contextmanager
def nothing_stays() -> Iterator[None]:
    """Modes and keys of dispatch are those from before, and operators run."""
    keys = torch._C._dispatch_tls_local_include_set(), torch._C._dispatch_tls_local_exclude_set()
    yield
    assert _get_current_dispatch_mode_stack() == []
    assert (torch._C._dispatch_tls_local_include_set(), torch._C._dispatch_tls_local_exclude_set()) == keys
    assert torch.equal(torch.ones(2) + 1, torch.full((2,), 2.0))


def watched(folder: Path, program: Callable[[], list[torch.Tensor]], iteration: str) -> list[torch.Tensor]:
    with nothing_stays():
        settings = config(folder, saved_data="statistic", statistic_category=["max", "l2norm"], iteration=iteration)
        with msdump.watch(config=settings) as watch:
            found = program()
        report = watch.report()
        assert report is not None and not report.error and not report.lost
    return found


def same(one: list[torch.Tensor], other: list[torch.Tensor]) -> bool:
    return len(one) == len(other) and all(map(torch.equal, one, other))


@pytest.mark.parametrize("iteration", ["all", "1|3"])
@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("guard", BLOCKS)
def test_guards(guard: str, part: str, iteration: str, tmp_path: Path) -> None:
    """Around the first, the last, some, or all calls of a model, as a block and as a decorator."""
    forms = [in_block, decorated] if guard in DECORATORS else [in_block]
    for form in forms:
        for place in PLACES:
            program = partial(PARTS[part], form(BLOCKS[guard]), place)
            assert same(watched(tmp_path / f"{form.__name__}_{place}", program, iteration), program()), place


@pytest.mark.parametrize("name", CALLS)
def test_what_calls_a_model(name: str, tmp_path: Path) -> None:
    """What runs it in parts, again, or records it: around the last call, and around all."""
    for place, iteration in (("last", "all"), ("all", "all"), ("all", "1|3")):
        found = watched(tmp_path / f"{place}_{len(iteration)}", partial(calls, CALLS[name], place), iteration)
        assert same(found, calls(CALLS[name], place)), (place, iteration)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_in_each_guard(name: str, engine: str, tmp_path: Path) -> None:
    """Bits of each program are those without msdump, and so is what PyTorch refuses, as a batch norm under `vmap`."""
    made = PROGRAMS[name]
    parts = [
        (f"{guard} {form.__name__}", partial(evaluation, form(BLOCKS[guard]), "some", made))
        for guard in BLOCKS
        for form in ([in_block, decorated] if guard in DECORATORS else [in_block])
    ] + [(call, partial(calls, CALLS[call], "last", made)) for call in CALLS]
    # Another guard is the first one, and another the last one.
    first = list(PROGRAMS).index(name) % len(parts)
    parts = parts[first:] + parts[:first]
    expected = []
    for what, program in parts:
        # PyTorch computes the tangent of a layer norm otherwise, to 6e-8, in any dispatch mode.
        with OtherMode() if (what, engine) == ("dual numbers", "mode") else contextlib.nullcontext():
            expected.append(given_or_refused(program))
    found: list[object] = []

    def all_parts() -> list[torch.Tensor]:
        found.extend(given_or_refused(program) for _, program in parts)
        return []

    watched(tmp_path, all_parts, "all")
    assert [what for (what, _), one, other in zip(parts, found, expected, strict=True) if one != other] == []


def given_or_refused(program: Callable[[], list[torch.Tensor]]) -> object:
    """The bits of results, or the type of an exception of PyTorch's."""
    try:
        return [(each.dtype, each.shape, bytes(each.contiguous().view(torch.uint8).numpy())) for each in program()]
    except Exception as error:  # noqa: BLE001 - whatever PyTorch says, it says it with and without msdump
        return type(error)


@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning")
@pytest.mark.parametrize("iteration", ["all", "1|3"])
def test_a_trace_of_what_no_mode_can_trace(iteration: str, tmp_path: Path) -> None:
    """A convolution and `repeat`, by the first call and by later ones; what runs beside the trace is dumped."""
    model, x = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.ReLU()), torch.ones(1, 1, 5, 5)

    def program() -> list[torch.Tensor]:
        found = []
        for _ in range(STEPS):
            traced = torch.jit.trace(model, x)
            repeated = torch.jit.trace(lambda v: v.repeat(2, 1), x[0, 0])
            found += [traced(x), repeated(x[0, 0]), model(x).cos()]
        return [each.detach().clone() for each in found]

    assert same(watched(tmp_path, program, iteration), program())
    assert any("aten.cos" in row[1] for graph in rows(tmp_path).values() for row in graph)


def test_nothing_is_lost_after_a_guard(tmp_path: Path) -> None:
    """The mode may be entered inside of a guard that restores the keys: operators after it are seen all the same."""

    def program() -> list[torch.Tensor]:
        model, x, found = torch.nn.Linear(3, 2), torch.ones(1, 3), []
        for _ in range(STEPS):
            with torch.inference_mode():
                y = model(x)
            found.append(y.cos() + 1)
        return found

    watched(tmp_path, program, "1|3")
    seen = [graph for graph in rows(tmp_path).values() if any("aten.cos" in row[1] for row in graph)]
    assert len(seen) == 2


def test_an_exception_and_a_generator_leave_a_guard(tmp_path: Path) -> None:
    model, x = small_model(), torch.ones(1, 4)

    @torch.inference_mode()
    def outputs() -> Iterator[torch.Tensor]:
        for factor in range(STEPS):
            yield model(x * factor)

    def program() -> list[torch.Tensor]:
        found = []
        for each in outputs():
            found.append(each + torch.ones(2))
        for _ in range(2):
            with contextlib.suppress(ZeroDivisionError), torch.inference_mode():
                found.append(model(x).clone())
                raise ZeroDivisionError
            found.append(model(found[0]) if found[0].shape[-1] == 4 else torch.ones(2) * 3)
        return [each.detach().clone() for each in found]

    for iteration in ("all", "1|3"):
        assert same(watched(tmp_path / str(len(iteration)), program, iteration), program())


def test_another_thread_has_guards_of_its_own(tmp_path: Path) -> None:
    model, x = small_model(), torch.ones(1, 4)

    def program() -> list[torch.Tensor]:
        found = []

        def work() -> None:
            with torch.inference_mode():
                found.append(model(x).clone())

        for _ in range(STEPS):
            with torch.inference_mode():
                found.append(model(x).clone())
                thread = threading.Thread(target=work)
                thread.start()
                thread.join()
            found.append(torch.ones(2) + 1)
        return found

    assert same(watched(tmp_path, program, "all"), program())


def test_a_block_that_ends_inside_of_a_guard_says_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Its mode stays where PyTorch will restore that there is one, and shows nothing any more."""
    watch = msdump.watch(config=config(tmp_path))
    watch.__enter__()
    try:
        with torch.inference_mode():
            watch.__exit__(None, None, None)
        assert torch.equal(torch.ones(2) + 1, torch.full((2,), 2.0))
        assert [each.levelname for each in caplog.records if "torch.inference_mode" in each.message] == ["WARNING"]
    finally:
        while _get_current_dispatch_mode_stack():
            _pop_mode()
