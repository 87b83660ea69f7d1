"""What Dynamo leaves out is told: where, why, how often, and how many operators ran there."""

from __future__ import annotations

import io
import os
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from hypothesis import given  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

import msdump  # noqa: E402
from msdump.cli.report_text import print_report  # noqa: E402
from msdump.frontends.torch import backend, outside, redirect  # noqa: E402
from tests.frontends.torch import dumping  # noqa: E402
from tests.torchair.dumps import backend_for  # noqa: E402

# PyTorch itself looks at it when it goes on behind a graph break.
pytestmark = pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf:UserWarning")


@pytest.fixture(autouse=True)
def nothing_counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    torch._dynamo.reset()
    torch._dynamo.utils.graph_break_reasons.clear()
    torch._dynamo.utils.clear_compilation_metrics()
    breaks, gaps = outside.Breaks(), outside.Gaps()
    monkeypatch.setattr(outside, "breaks", breaks)
    monkeypatch.setattr(outside, "gaps", gaps)
    monkeypatch.setattr("msdump.frontends.torch.runner.gaps", gaps)
    yield
    gaps.stop()
    torch._dynamo.reset()


def run(model: Any, steps: int = 4) -> str:
    compiled = torch.compile(model, backend=backend)
    for _ in range(steps):
        compiled(torch.ones(3, 2, 4)).sum().backward()
    stream = io.StringIO()
    print_report(dumping.close(), stream)
    return stream.getvalue()


class Broken(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = torch.nn.Linear(4, 4)

    def forward(self, x: Any) -> Any:
        y = self.fc(x)
        torch._dynamo.graph_break()
        return self.left_out(y).relu()

    @torch._dynamo.disable
    def left_out(self, y: Any) -> Any:
        return torch.nn.functional.gelu(y.sin() + 1)


class Recurrent(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = torch.nn.Linear(4, 4)
        self.rnn = torch.nn.LSTM(4, 5)

    def forward(self, x: Any) -> Any:
        return self.rnn(self.encode(x))[0]

    def encode(self, x: Any) -> Any:
        return self.fc(x)


def line_of(text: str) -> int:
    return next(n for n, line in enumerate(Path(__file__).read_text().splitlines(), 1) if text in line)


def test_breaks_are_counted_by_line_and_operators_between_graphs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dumping.configure(tmp_path, monkeypatch)
    report = run(Broken())
    first, second = line_of("torch._dynamo.graph_break()"), line_of("return self.left_out(y)")
    assert f"graph break: {__file__}:{first} in forward: " in report
    assert f"graph break: {__file__}:{second} in forward: " in report
    # sin, add, gelu; nothing of the loss and nothing of the script.
    assert "3 operators of a step ran outside of its graphs, in no dump." in report
    assert f"not in a graph: {__file__}:{line_of('gelu(y.sin()')} in left_out: 3 operators" in report


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_forked_process_leaves_what_ran_before_to_its_parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dumping.configure(tmp_path, monkeypatch)
    before = run(Broken())
    child = os.fork()
    if not child:
        os._exit(len(outside.lines()))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert "\n".join(outside.lines()) and all(line in before for line in outside.lines())


class Wrapped(torch.nn.Module):
    """Frames that are left out around a graph, which runs twice."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = torch.nn.Linear(4, 4)

    def forward(self, x: Any) -> Any:
        x = self.before(x)
        for _ in range(2):
            x = self.encode(x)
            torch._dynamo.graph_break()
        return self.after(x)

    def encode(self, x: Any) -> Any:
        return self.inner(x)

    @torch._dynamo.disable
    def before(self, x: Any) -> Any:
        return x.sin().cos()

    @torch._dynamo.disable
    def after(self, x: Any) -> Any:
        return x.exp() * 2 - 1


def ran_outside(report: str) -> dict[str, int]:
    """Function of the script -> operators that ran there and in no graph."""
    found = re.findall(r"not in a graph: .+ in (\w+): (\d+) operators?$", report, re.MULTILINE)
    return {function: int(count) for function, count in found}


@pytest.mark.parametrize("steps", [2, 5])
def test_operators_before_the_first_and_after_the_last_graph_are_counted(
    steps: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dumping.configure(tmp_path, monkeypatch)
    report = run(Wrapped(), steps)
    assert "5 operators of a step ran outside of its graphs, in no dump." in report
    assert ran_outside(report) == {"before": 2, "after": 3}


def test_a_dump_of_torchair_counts_as_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = torch.compile(Wrapped(), backend=backend_for(tmp_path))
    for _ in range(2):
        compiled(torch.ones(3, 2, 4)).sum().backward()
    assert ran_outside("\n".join(outside.lines())) == {"before": 2, "after": 3}


def test_an_rnn_that_is_left_out_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dumping.configure(tmp_path, monkeypatch)
    with torch._dynamo.config.patch(**({"allow_rnn": False} if hasattr(torch._dynamo.config, "allow_rnn") else {})):
        report = run(Recurrent(), steps=2)
    assert ran_outside(report)["forward"] > 0


def test_an_input_that_a_model_updates_is_part_of_its_graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dumping.configure(tmp_path, monkeypatch)
    assert "outside" not in run(torch.nn.Sequential(torch.nn.BatchNorm1d(2), torch.nn.Dropout(0.5)))


def test_no_compiled_call_is_watched_without_a_dump(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MINDSPORE_DUMP_CONFIG", raising=False)
    watched: list[object] = []
    monkeypatch.setattr(outside, "_watch_calls", lambda: watched.append(None))
    compiled = torch.compile(Broken(), backend=backend)
    for _ in range(3):
        compiled(torch.ones(3, 2, 4)).sum().backward()
    assert not watched and not outside.gaps.operators


def test_calls_of_two_threads_are_counted_apart() -> None:
    gaps, turns = outside.gaps, [threading.Event(), threading.Event()]

    def call(name: str, own: threading.Event, other: threading.Event) -> None:
        for _ in range(2):
            gaps.begin(name)
            gaps.enter(f"{name}'s graph")
            gaps.leave(f"{name}'s graph")
            torch.ones(2).sin()
            other.set()
            own.wait(60)
            gaps.end(name)

    threads = [threading.Thread(target=call, args=(name, *order)) for name, order in (("a", turns), ("b", turns[::-1]))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # Each thread runs two operators behind its graph; only one thread is looked at at a time.
    assert gaps.operators.total() in (2, 4)


def test_a_model_in_one_graph_has_nothing_outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dumping.configure(tmp_path, monkeypatch)
    assert "outside" not in run(torch.nn.Linear(4, 4))


def test_what_an_earlier_dump_saw_compiled_is_no_part_of_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
    dumping.configure(tmp_path / "first", monkeypatch)
    with msdump.watch(config=tmp_path / "first" / "data_dump.json") as watch:
        torch.compile(torch.nn.Linear(4, 4), backend="eager")(torch.ones(1, 4))
    report = watch.report()
    assert report is not None and any("compiled by torch.compile" in line for line in report.outside)
    dumping.configure(tmp_path / "second", monkeypatch)
    assert "outside" not in run(torch.nn.Linear(4, 4))


def test_a_frame_that_is_left_out_is_named_with_what_helps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dumping.configure(tmp_path, monkeypatch)
    torch.compile(torch.nn.Linear(4, 4), backend=backend)(torch.ones(4))
    report = run(Recurrent())
    assert f"not captured: {__file__}:{line_of('return self.rnn(self')} in forward: " in report
    assert "--torch-rnn" in report


@pytest.mark.skipif(not hasattr(torch._dynamo.config, "allow_rnn"), reason="this PyTorch captures no RNN")
def test_an_rnn_is_captured_when_it_is_allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = dumping.configure(tmp_path, monkeypatch)
    with torch._dynamo.config.patch(allow_rnn=False):
        redirect.capture_rnn()
        model = Recurrent()
        assert "outside" not in run(model)
    assert list(root.rglob("*lstm*.npy")) or list(root.rglob("*tanh*.npy"))


def test_a_look_that_a_backward_ends_is_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that was followed by another one, and now by a backward pass, which ends in a state of its own."""
    dumping.configure(tmp_path, monkeypatch)
    first, second = (torch.compile(torch.nn.Linear(2, 2), backend=backend) for _ in range(2))
    for calls in ([first, second, first], [second, first], [first, second, first]):
        x = torch.ones(1, 2)
        for call in calls:
            x = call(x)
        x.sum().backward()
    dumping.close()
    with torch.autograd.profiler.profile() as profiler:
        torch.ones(2).exp()
    assert profiler.function_events
    assert outside._enable()
    outside._disable()


def test_another_profiler_is_left_alone() -> None:
    gaps = outside.gaps
    with torch.autograd.profiler.profile() as profile:
        for _ in range(3):
            for graph in "ab":
                gaps.enter(graph)
                gaps.leave(graph)
                torch.ones(2).sin()
    assert not gaps.operators
    assert any(event.name == "aten::sin" for event in profile.function_events)


STACK = [
    f"{torch.__file__}(3): inner",
    "<string>(1): text",
    "/net/train.py(12): forward",
    "/net/train.py(40): <module>",
]


def event(kind: str, name: str = "") -> Any:
    return SimpleNamespace(kind=lambda: kind, name=lambda: name, stack=lambda: STACK)


calls = st.recursive(
    st.sampled_from(["aten::add", "mine::op", "Region"]).map(lambda name: (name, [])),
    lambda inner: st.tuples(st.sampled_from(["aten::mul", "Region"]), st.lists(inner, max_size=3)),
    max_leaves=12,
)


def flat(call: Any) -> list[Any]:
    name, inner = call
    return [event("push", name), *(part for each in inner for part in flat(each)), event("pop")]


def outermost(call: Any) -> int:
    name, inner = call
    return 1 if "::" in name else sum(map(outermost, inner))


@given(st.lists(calls, max_size=5))
def test_operators_that_others_call_are_not_counted(made: list[Any]) -> None:
    events = [part for call in made for part in flat(call)]
    found = outside.operators_in([[event("mark", "__start_profile"), *events]])
    assert found.total() == sum(map(outermost, made)) and set(found) <= {"/net/train.py:12 in forward"}
