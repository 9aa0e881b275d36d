"""The adapter by hand is PEFT's: output, gradients, and what is left of it when it is merged."""

import pytest
import torch
from peft import LoraConfig, inject_adapter_in_model
from torch import nn

from helpers.course.by_hand_lora import LoRALinear, adapter_parameters

D_IN, D_OUT = 7, 5


@pytest.fixture(params=[True, False], ids=["with a bias", "without"])
def linear(request):
    torch.manual_seed(0)
    return nn.Linear(D_IN, D_OUT, bias=request.param)


def trained(layer):
    """A layer whose B has left 0."""
    with torch.no_grad():
        layer.B.normal_()
    return layer


@pytest.mark.parametrize(("r", "alpha"), [(1, 2), (3, 6), (3, 1.5)])
def test_output_and_gradients_are_those_of_peft(linear, r, alpha):
    ours = trained(LoRALinear(linear, r, alpha))
    holder = nn.Sequential(linear)
    inject_adapter_in_model(LoraConfig(r=r, lora_alpha=alpha, target_modules=["0"]), holder)
    theirs = holder[0]
    theirs.lora_A["default"].weight.data = ours.A.data.clone()
    theirs.lora_B["default"].weight.data = ours.B.data.clone()
    x = torch.randn(4, 6, D_IN)
    assert torch.allclose(ours(x), theirs(x), atol=1e-5)
    ours(x).square().sum().backward()
    theirs(x).square().sum().backward()
    for name, other in (("A", theirs.lora_A), ("B", theirs.lora_B)):
        gradient = getattr(ours, name).grad
        assert gradient.abs().max() > 0.1
        assert torch.allclose(gradient, other["default"].weight.grad, rtol=1e-4, atol=1e-4)


def test_a_new_layer_changes_nothing_and_trains_what_was_counted(linear):
    layer = LoRALinear(linear, 3, 6)
    x = torch.randn(4, D_IN)
    assert torch.equal(layer(x), linear(x))
    numbers = [weights.numel() for weights in layer.parameters() if weights.requires_grad]
    assert sum(numbers) == adapter_parameters(D_IN, D_OUT, 3)
    layer(x).square().sum().backward()
    assert layer.B.grad.abs().max() > 0
    assert layer.A.grad.abs().max() == 0


def test_merged_weights_give_the_adapters_output(linear):
    layer = trained(LoRALinear(linear, 2, 8))
    x = torch.randn(4, D_IN)
    merged = linear.weight + 8 / 2 * layer.B @ layer.A
    assert torch.allclose(nn.functional.linear(x, merged, linear.bias), layer(x), atol=1e-5)
    assert not torch.allclose(linear(x), layer(x), atol=0.1)
