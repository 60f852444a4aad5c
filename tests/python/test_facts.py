# SPDX-License-Identifier: MIT
"""Plain facts that objects tell: traits of devices, counters of contexts, layers of networks, matches of weights."""

from __future__ import annotations

import dlprim
import numpy as np
import pytest
from dlprim import nn, weights


def test_traits_of_a_device(context: dlprim.Context) -> None:
    traits = context.traits
    assert isinstance(traits, dlprim.Traits)
    assert isinstance(context.info, dlprim.DeviceInfo)
    assert traits.host == (context.info.id == "cpu")
    sizes = (
        traits.base_align_bytes,
        traits.compute_units,
        traits.global_bytes,
        traits.max_alloc_bytes,
        traits.max_work_group,
        traits.vector_registers,
        traits.vector_width,
    )
    assert all(isinstance(size, int) and size >= 1 for size in sizes)
    maybe = (traits.cache_bytes, traits.local_bytes, traits.mma_local_bytes, traits.subgroup_size)
    assert all(isinstance(size, int) and size >= 0 for size in maybe)
    flags = (
        traits.fp16,
        traits.fp64,
        traits.matrix_bf16,
        traits.matrix_fp16,
        traits.mma,
        traits.own_cores,
        traits.unified_memory,
        traits.wgmma,
        traits.wide_vectors,
    )
    assert all(isinstance(flag, bool) for flag in flags)
    assert min(traits.gflops, traits.gbytes_per_s, traits.launch_us) > 0


def test_counters_count_what_is_done(fresh_context: dlprim.Context) -> None:
    before = fresh_context.counters
    assert isinstance(before, dlprim.Counters)
    tensor = dlprim.Tensor(fresh_context, np.ones(1024, np.float32))
    dlprim.ops.relu(tensor).numpy()
    after = fresh_context.counters
    assert after.allocations > before.allocations
    assert after.allocated_bytes >= before.allocated_bytes + 4096
    assert after.launches > before.launches
    if fresh_context.info.id != "cpu":
        assert after.waits > before.waits
        assert after.flushes >= before.flushes
        assert after.compiles + after.cache_hits >= 1


def test_layers_have_titles_and_apply() -> None:
    layer: nn.Layer = nn.Linear(4, name="scores")
    assert layer.title == "Linear 'scores'"
    x = nn.Input("data", (2, 3))
    [scores] = layer.apply(x)
    assert scores.shape == (2, 4)
    model = nn.Model(x, nn.pow(scores, 2), name="squares")
    assert model.title == "Model 'squares'"


def test_options_that_all_layers_take() -> None:
    assert set(nn.LayerOptions.__annotations__) >= {"engine", "frozen", "name", "params", "precision"}
    for option in ("engine", "params", "precision"):
        with pytest.raises((TypeError, dlprim.InvalidArgumentError), match=option):
            nn.Linear(4, **{option: object()})  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="no_such_option"):
        nn.Linear(4, no_such_option=1)  # type: ignore[call-arg]


def test_power_is_that_of_numpy(context: dlprim.Context) -> None:
    x = nn.Input("data", (2, 3))
    net = nn.Model(x, {"out": nn.pow(x, 3)}).build(context, mode="inference")
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_allclose(net(values)["out"], values**3, rtol=1e-5)


def test_matches_are_records() -> None:
    shapes = {"fc.0": (4, 3), "fc.1": (4,)}
    state = {"fc.weight": np.zeros((4, 3), np.float32), "fc.bias": np.zeros(4, np.float32)}
    matches = weights.match(shapes, state)
    assert isinstance(matches, weights.Matches)
    assert all(isinstance(match, weights.Match) for match in matches)
    expected = [("fc.0", "fc.weight", (4, 3)), ("fc.1", "fc.bias", (4,))]
    assert [(match.param, match.source, tuple(match.shape)) for match in matches] == expected
