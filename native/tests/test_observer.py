"""What the observer records, and that nothing else changes: results, memory, threads, processes, exceptions."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

native = pytest.importorskip("msdump_native")

NONE = 0xFFFFFFFF


@pytest.fixture
def observer():
    own = native.Observer()
    yield own
    own.disable()


def names(batch) -> list[str]:
    return [batch["names"][index] for index in batch["operators"]["name"]]


def operands(batch, index: int, role: int | None = None):
    row = batch["operators"][index]
    found = batch["operands"][row["first_operand"] : row["first_operand"] + row["operand_count"]]
    return found if role is None else found[found["role"] == role]


def small_model() -> torch.nn.Module:
    return torch.nn.Sequential(
        torch.nn.Linear(6, 8), torch.nn.BatchNorm1d(8), torch.nn.ReLU(inplace=True), torch.nn.Linear(8, 2)
    )


def steps(count: int) -> list[torch.Tensor]:
    torch.manual_seed(3)
    model = small_model()
    optimizer = torch.optim.AdamW(model.parameters(), 0.1)
    found = []
    for _ in range(count):
        optimizer.zero_grad()
        loss = model(torch.randn(5, 6)).square().mean()
        loss.backward()
        found += [loss.detach(), *(each.grad.clone() for each in model.parameters())]
        optimizer.step()
    return [*found, *(each.detach() for each in model.state_dict().values())]


def test_results_and_gradients_keep_their_bits(observer) -> None:
    plain = steps(5)
    observer.enable()
    seen = steps(5)
    observer.disable()
    assert observer.take()["failure"] == ""
    assert len(plain) == len(seen) and all(map(torch.equal, plain, seen))


def test_operands_versions_and_numbers(observer) -> None:
    x, y = torch.full((2, 3), 2.0), torch.ones(3)
    observer.enable()
    x.add_(y, alpha=0.5)
    z = x * 1.5
    torch.addmm(torch.zeros(2), x, x.t()[:, :2], beta=2.0)
    observer.disable()
    batch = observer.take()
    assert names(batch)[:2] == ["aten.add_.Tensor", "aten.mul.Tensor"]
    first, second = operands(batch, 0, 0)
    assert first["is_written"] and not second["is_written"]
    (result,) = operands(batch, 0, 2)
    tensors, measurements = batch["tensors"], batch["measurements"]
    before, after = tensors[first["tensor"]], tensors[result["tensor"]]
    assert before["storage"] == after["storage"] == x.untyped_storage()._cdata
    assert (before["version"], after["version"]) == (0, 1)
    assert measurements[before["measurement"]]["average"] == 2.0
    assert measurements[after["measurement"]]["average"] == 2.5
    assert operands(batch, 1, 0)["tensor"].tolist() == [result["tensor"]]
    rows = batch["operators"]
    assert batch["numbers"][rows[0]["first_number"] :][: rows[0]["number_count"]].tolist() == [0.5]
    assert batch["numbers"][rows[1]["first_number"] :][: rows[1]["number_count"]].tolist() == [1.5]
    assert rows["duration_ns"].min() > 0 and set(rows["thread"].tolist()) == {threading.get_ident()}
    assert z.mean() == 3.75


def test_transposed_views_share_statistics(observer) -> None:
    x = torch.randn(4, 5)
    observer.enable()
    torch.mm(x, x.t())
    torch.mm(x[:, 1:], x.t()[1:])
    observer.disable()
    batch = observer.take()
    mm = [index for index, name in enumerate(names(batch)) if name == "aten.mm.default"]
    first, second = (batch["tensors"][operands(batch, index, 0)["tensor"]] for index in mm)
    assert first["measurement"][0] == first["measurement"][1]
    # Parts with gaps are measured one by one.
    assert second["measurement"][0] != first["measurement"][0]
    averages = batch["measurements"][second["measurement"]]["average"]
    np.testing.assert_allclose(averages, x[:, 1:].double().mean().item())


def test_lists_out_and_batch_norm(observer) -> None:
    room, mean, variance = torch.empty(2, 2), torch.zeros(2), torch.ones(2)
    x = torch.randn(2, 2)
    several = [torch.ones(2), torch.ones(3)]
    observer.enable()
    torch.mm(x, x, out=room)
    torch._foreach_add_(several, 1.0)
    torch.nn.functional.batch_norm(x, mean, variance, training=True)
    torch.ops.aten.index.Tensor(x, [None, torch.tensor([1])])
    observer.disable()
    batch = observer.take()
    assert names(batch)[:2] == ["aten.mm.out", "aten._foreach_add_.Scalar"]
    assert operands(batch, 0)["role"].tolist() == [0, 0, 1, 2]
    assert operands(batch, 1)["role"].tolist() == [0, 0, 3, 3]
    assert operands(batch, 1)["element"].tolist() == [0, 1, 0, 1]
    assert batch["tensors"][operands(batch, 1, 3)["tensor"]]["version"].tolist() == [1, 1]
    index = names(batch).index("aten.native_batch_norm.default")
    assert operands(batch, index, 0)["is_written"].tolist() == [0, 1, 1]
    index = names(batch).index("aten.index.Tensor")
    assert operands(batch, index, 0)["element"].tolist() == [-1, 1]


def test_nodes_of_autograd_name_what_made_them() -> None:
    observer = native.Observer(stops=(torch.autograd.graph._engine_run_backward.__code__,))
    x, w = torch.randn(2, 3), torch.randn(3, 4, requires_grad=True)
    observer.enable()
    loss = torch.tanh(x @ w).sum()
    forward = observer.take()
    loss.backward()
    backward = observer.take()
    observer.disable()
    assert names(forward) == ["aten.mm.default", "aten.tanh.default", "aten.sum.default"]
    assert (forward["operators"]["node_name"] == NONE).all()
    made = dict(zip(names(forward), forward["operators"][["first_sequence", "last_sequence"]].tolist(), strict=True))
    node_names = backward["node_names"]
    by_node = {
        node_names[row["node_name"]]: int(row["node_sequence"])
        for row in backward["operators"]
        if row["node_name"] != NONE
    }
    for node, operator in (("TanhBackward0", "aten.tanh.default"), ("MmBackward0", "aten.mm.default")):
        first, last = made[operator]
        assert first <= by_node[node] < last
    assert (backward["operators"][names(backward).index("aten.tanh_backward.default")]["site"]) == 0
    assert backward["first_tensor"] == len(forward["tensors"])


def here(x: torch.Tensor) -> torch.Tensor:
    return x + 1


def test_call_sites() -> None:
    def outer(x: torch.Tensor) -> torch.Tensor:
        return here(x)

    observer = native.Observer(stops=(outer.__code__,))
    x = torch.ones(2)
    observer.enable()
    for _ in range(2):
        outer(x)
    here(x)
    here(x)
    observer.disable()
    batch = observer.take()
    sites = batch["operators"]["site"].tolist()
    assert len(sites) == 4 and sites[0] == sites[1] and len(set(sites)) == 3
    (first, *_) = batch["sites"]
    hash_, inner, frames = first
    line = here.__code__.co_firstlineno
    assert (hash_, inner) == (sites[0], 1) and frames[0][:4] == (__file__, "here", line, line + 1)
    assert frames[1][1] == "outer"
    assert len(batch["sites"]) == 3 and observer.take()["sites"] == []
    with pytest.raises(TypeError, match="expected code objects"):
        native.Observer(stops=(1,))


def test_passed_files() -> None:
    observer = native.Observer(passed_files=[__file__], stops=(sys._getframe(1).f_code,))
    observer.enable()
    here(torch.ones(2))
    observer.disable()
    assert observer.take()["operators"]["site"].tolist()[-1] == 0


def test_operators_that_raise(observer) -> None:
    x = torch.ones(2, 3)
    observer.enable()
    with pytest.raises(RuntimeError):
        torch.mm(x, x)
    x + 1
    observer.disable()
    batch = observer.take()
    assert names(batch) == ["aten.mm.default", "aten.add.Tensor"]
    assert batch["operators"]["has_raised"].tolist() == [1, 0]
    assert len(operands(batch, 0, 0)) == 2 and len(operands(batch, 0, 2)) == 0


def test_an_exception_in_a_hook_leaves_nothing_behind(observer) -> None:
    w = torch.randn(3, requires_grad=True)

    def hook(gradient: torch.Tensor) -> None:
        raise ValueError("from a hook")

    observer.enable()
    y = w * 2
    y.register_hook(hook)
    with pytest.raises(ValueError, match="from a hook"):
        y.sum().backward()
    torch.ones(2) + 1
    observer.disable()
    assert names(observer.take())[-2:] == ["aten.ones.default", "aten.add.Tensor"]


def test_skipped_tensors_are_counted(observer) -> None:
    sparse = torch.eye(3).to_sparse()
    numbers = torch.ones(2, dtype=torch.complex64)
    meta = torch.ones(2, device="meta")
    eights = torch.ones(2).to(torch.float8_e5m2)
    observer.enable()
    sparse * 2.0
    numbers + 1
    meta + 1
    eights.clone()
    observer.disable()
    batch = observer.take()
    assert batch["failure"] == ""
    skipped = batch["skipped"]
    assert skipped == {"layout": 2, "complex": 2, "meta device": 2}
    assert operands(batch, 0)["tensor"].tolist() == [NONE] * 2


def test_elements_of_rare_dtypes_are_kept(observer) -> None:
    eights = torch.arange(8.0).reshape(2, 4).to(torch.float8_e5m2)
    negative = torch.zeros(3, dtype=torch.complex64).add(1 + 2j).conj().imag
    observer.enable()
    turned = eights.t()
    turned.fill_(7.0)
    negative + 1.0
    observer.disable()
    batch = observer.take()
    assert batch["failure"] == "" and not batch["skipped"]
    # Copies of what was read, in the order of memory, before and after it is written.
    places, copies, are_negative = zip(*batch["kept"], strict=True)
    assert [copy.dtype for copy in copies] == [torch.float8_e5m2] * 2 + [torch.float32]
    assert copies[0].float().tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]
    assert copies[1].float().tolist() == [7.0] * 8
    assert copies[2].tolist() == [2.0] * 3 and are_negative == (False, False, True)
    assert batch["measurements"]["count"][list(places)].tolist() == [8, 8, 3]
    assert observer.take()["kept"] == []


def test_subclasses_are_counted(observer) -> None:
    from torch._subclasses import FakeTensorMode
    from torch.testing._internal.two_tensor import TwoTensor

    two = TwoTensor(torch.ones(2), torch.ones(2))
    with FakeTensorMode() as mode:
        fake = torch.ones(2)
    observer.enable()
    two * 2
    with mode:
        fake * 2
    observer.disable()
    skipped = observer.take()["skipped"]
    assert skipped["tensor subclass"] >= 1 and skipped["FakeTensor"] >= 1


def test_no_grad_and_measures() -> None:
    observer = native.Observer(measures=False)
    observer.enable()
    with torch.no_grad():
        torch.ones(3) @ torch.ones(3)
    observer.disable()
    batch = observer.take()
    assert names(batch) == ["aten.ones.default", "aten.ones.default", "aten.dot.default"]
    assert (batch["tensors"]["measurement"] == NONE).all() and len(batch["measurements"]) == 0


def test_off_is_free_and_idempotent(observer) -> None:
    assert not observer.is_enabled
    observer.enable()
    observer.enable()
    assert observer.is_enabled and torch._C._autograd._profiler_enabled() is False
    with pytest.raises(RuntimeError, match="expected no observer that is on"):
        native.Observer().enable()
    observer.disable()
    observer.disable()
    torch.ones(2) + 1
    assert len(observer.take()["operators"]) == 0


def test_an_observer_that_is_dropped_is_off() -> None:
    observer = native.Observer()
    observer.enable()
    del observer
    gc.collect()
    torch.ones(2) + 1
    other = native.Observer()
    other.enable()
    torch.ones(2)
    other.disable()
    assert names(other.take()) == ["aten.ones.default"]


def test_other_threads_are_not_seen(observer) -> None:
    observer.enable()
    thread = threading.Thread(target=lambda: [torch.ones(2) + 1 for _ in range(50)])
    thread.start()
    for _ in range(50):
        torch.ones(3) * 2
    thread.join()
    observer.disable()
    assert names(observer.take()) == ["aten.ones.default", "aten.mul.Tensor"] * 50


def test_disabled_in_another_thread(observer) -> None:
    observer.enable()
    thread = threading.Thread(target=observer.disable)
    thread.start()
    thread.join()
    torch.ones(2) + 1
    assert not observer.is_enabled and len(observer.take()["operators"]) == 0
    observer.enable()
    torch.ones(2)
    observer.disable()
    assert names(observer.take()) == ["aten.ones.default"]


def test_threads_that_enable_in_turns() -> None:
    found: list[list[str]] = []
    lock = threading.Lock()

    def work() -> None:
        for _ in range(20):
            with lock:
                observer = native.Observer()
                observer.enable()
                (torch.ones(2, requires_grad=True) * 2).sum().backward()
                observer.disable()
                found.append(names(observer.take()))
            torch.ones(5) + 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(found) == 80 and len({tuple(each) for each in found}) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore")
def test_a_child_process_is_not_seen(observer) -> None:
    observer.enable()
    torch.ones(2)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            torch.ones(2) + 1
            own = native.Observer()
            is_off = not observer.is_enabled and len(observer.take()["operators"]) == 1
            own.enable()
            torch.ones(2)
            own.disable()
            status = 0 if is_off and len(own.take()["operators"]) == 1 else 2
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    torch.ones(2)
    observer.disable()
    assert names(observer.take()) == ["aten.ones.default"] * 2


# A process of its own: what other tests have left would be counted.
GROWTH = """
import gc, os, torch, msdump_native as native

def resident():
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

observer = native.Observer()
model = torch.nn.Sequential(
    torch.nn.Linear(6, 8), torch.nn.BatchNorm1d(8), torch.nn.ReLU(inplace=True), torch.nn.Linear(8, 2)
)
optimizer = torch.optim.AdamW(model.parameters(), 0.001)

def step():
    observer.begin_iteration()
    optimizer.zero_grad()
    model(torch.randn(16, 6)).square().mean().backward()
    optimizer.step()
    observer.take()

observer.enable()
for _ in range(50):
    step()
gc.collect()
before, objects = resident(), len(gc.get_objects())
for _ in range(500):
    step()
gc.collect()
observer.disable()
print(resident() - before, len(gc.get_objects()) - objects)
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="no /proc")
def test_memory_does_not_grow() -> None:
    printed = subprocess.run([sys.executable, "-c", GROWTH], check=True, capture_output=True, text=True).stdout
    grown, objects = map(int, printed.split())
    assert grown < 4 << 20
    assert objects < 200


def test_tensors_die_while_they_are_observed(observer) -> None:
    import weakref

    observer.enable()
    tensor = torch.ones(1000)
    result = tensor + 1
    reference = weakref.ref(tensor)
    addresses = {int(result.untyped_storage()._cdata)}
    del tensor
    assert reference() is None
    for _ in range(20):
        addresses.add(int((torch.ones(1000) * 2).untyped_storage()._cdata))
    # Each storage has an address of its own, as long as the iteration lasts.
    assert len(addresses) == 21
    observer.disable()
    batch = observer.take()
    assert len(set(batch["tensors"]["storage"].tolist())) == 42


def test_under_the_profiler_of_pytorch(observer) -> None:
    with torch.profiler.profile() as profiler:
        observer.enable()
        torch.ones(2) @ torch.ones(2)
        observer.disable()
    assert any(event.key == "aten::dot" for event in profiler.key_averages())
    assert names(observer.take()) == ["aten.ones.default", "aten.ones.default", "aten.dot.default"]


def test_observed_tensors_measure_as_measure_does(observer) -> None:
    x = torch.randn(70, 900)
    observer.enable()
    y = x.relu()
    observer.disable()
    batch = observer.take()
    for tensor, index in zip((x, y), (0, 1), strict=True):
        row = batch["measurements"][batch["tensors"][operands(batch, 0)["tensor"][index]]["measurement"]]
        assert row.tobytes() == native.measure(tensor)[0].tobytes()


def test_the_handler_is_asked_where_the_state_changes():
    observer = native.Observer()
    asked = []

    def handler(name: str, has_node: bool) -> bool:
        asked.append((name, has_node, torch.is_grad_enabled()))
        observer.asks = False
        return name != "aten.cos.default"

    observer.set_handler(handler)
    observer.scope = 5
    observer.enable()
    x = torch.ones(3, requires_grad=True)
    y = torch.exp(x).mul(2)
    with torch.no_grad():
        torch.cos(x)
        torch.tan(x)
    y.sum().backward()
    observer.disable()
    assert asked[:2] == [("aten.ones.default", False, True), ("aten.cos.default", False, False)]
    assert [each[1:] for each in asked[2:]] == [(False, True), (True, False)]  # `tan` is not asked for
    batch = observer.take()
    names = [batch["names"][place] for place in batch["operators"]["name"]]
    assert "aten.exp.default" in names and "aten.cos.default" not in names and "aten.tan.default" not in names
    assert set(batch["operators"]["scope"].tolist()) == {5}
    assert batch["operators"]["has_grad"][names.index("aten.exp.default")] == 1


def test_what_the_handler_raises_ends_the_observer():
    observer = native.Observer()

    def handler(name: str, has_node: bool) -> bool:
        raise ValueError("no more")

    observer.set_handler(handler)
    observer.enable()
    assert torch.sin(torch.zeros(2)).tolist() == [0, 0]
    assert not observer.is_enabled and observer.take()["failure"] == "no more"


def test_arguments_are_those_of_a_mode():
    seen = []

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            names = [argument.name for argument in function._schema.arguments]
            given = {**dict(zip(names, args, strict=False)), **(kwargs or {})}
            seen.append({name: each for name, each in given.items() if not holds_tensors(each)})
            return function(*args, **(kwargs or {}))

    def holds_tensors(value) -> bool:
        return isinstance(value, torch.Tensor) or (
            isinstance(value, list | tuple) and any(isinstance(each, torch.Tensor) for each in value)
        )

    def program():
        x = torch.arange(12.0).reshape(3, 4)
        x.to(torch.float64).sum(1, keepdim=True)
        torch.add(x, 2.5, alpha=3)
        torch.full((2,), 7, dtype=torch.int32)
        x.clone(memory_format=torch.contiguous_format)
        torch.nn.functional.conv1d(x[None], torch.ones(2, 3, 2), padding=1)
        torch.nn.functional.pad(x, (1, 1), value=-1.0)
        torch.stack([x, x], 1).amax((0, 2))

    with torch.no_grad():
        observer = native.Observer()
        observer.enable()
        program()
        observer.disable()
        batch = observer.take()
        with Mode():
            program()
    found = [batch["arguments"].of(index) for index in range(len(batch["operators"]))]
    assert found == seen
    with pytest.raises(IndexError):
        batch["arguments"].of(len(found))


def expected_of(batch) -> np.ndarray:
    operators = batch["operators"]
    return operators["key"][np.argsort(operators["start_ns"], kind="stable")]


def test_what_is_not_wanted_is_not_measured() -> None:
    model = small_model()
    x = torch.randn(4, 6)

    def step(wanted: np.ndarray | None = None, scale: float = 1.0) -> dict:
        observer.begin_iteration()
        if wanted is not None:
            observer.expect(keys, wanted)
        y = model(x)
        if scale != 1.0:
            y = torch.sin(y)
        y.sum().backward()
        return observer.take()

    # Whatever line calls it.
    observer = native.Observer(stops=(step.__code__,))
    observer.enable()
    step()
    batch = step()
    keys = expected_of(batch)
    assert len(batch["measurements"]) > 20
    nothing = np.zeros(len(keys), np.uint8)
    again = step(nothing)
    assert np.array_equal(expected_of(again), keys) and len(again["measurements"]) == 0
    # For one batch alone.
    assert len(step()["measurements"]) == len(batch["measurements"])

    # One operator, whose operands were met before where they were not wanted.
    wanted = np.zeros(len(keys), np.uint8)
    wanted[6] = 1
    one = step(wanted)
    row = one["operators"][np.argsort(one["operators"]["start_ns"], kind="stable")[6]]
    own = one["operands"][row["first_operand"] : row["first_operand"] + row["operand_count"]]
    assert (one["tensors"]["measurement"][own["tensor"]] != NONE).all() and len(own)
    assert len(one["measurements"]) == len(set(one["tensors"]["measurement"][own["tensor"]]))

    # From where it is another program on, all is measured.
    other = step(nothing, 2.0)
    assert 0 < len(other["measurements"]) < len(batch["measurements"]) + 8
    first = int(np.flatnonzero(expected_of(other)[: len(keys)] != keys)[0])
    assert (
        other["names"][other["operators"]["name"][np.argsort(other["operators"]["start_ns"])[first]]]
        == "aten.sin.default"
    )
    with pytest.raises(ValueError, match="one length"):
        observer.expect(keys, wanted[1:])
    observer.disable()
