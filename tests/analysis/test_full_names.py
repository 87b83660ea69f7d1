"""What full names of operators say."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from msdump.analysis.full_names import layer_of, short_label, stage_of


@given(
    layers=st.lists(st.from_regex(r"[a-z][a-z0-9]{0,5}(-[A-Z][a-z]{1,5})", fullmatch=True), max_size=4),
    is_backward=st.booleans(),
)
def test_a_layer_is_the_names_of_its_modules(layers: list[str], is_backward: bool) -> None:
    scopes = ["Default", "network-WithLossCell", "_backbone-Net", *layers]
    if is_backward:
        scopes = ["Gradients", *scopes, "gradMatMul-expand"]
    names = [layer.partition("-")[0] for layer in layers if not layer.startswith("network-")]
    assert layer_of("/".join([*scopes, "MatMul-op3"])) == ".".join(names)
    assert layer_of("MatMul-op3") is None


def test_stages_and_short_names() -> None:
    assert [stage_of(name) for name in ("Default/MatMul-op1", "Gradients/MatMul-op2", "Default/optimizer-Adam/x")] == [
        "forward", "backward", "optimizer",
    ]  # fmt: skip
    assert short_label("Default/fc-Dense/MatMul-op1") == "MatMul-op1"
    assert short_label("Default/body/MatMul-op1") == "Default/body/MatMul-op1"
    assert short_label("enc/layer.0") == "enc/layer.0"
