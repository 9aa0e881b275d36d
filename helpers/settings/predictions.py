"""What a training run will take, minutes and memory, before it is started.

The constants were measured with click-button, one turn of 250 tokens, on two machines: one with 2
cores and no GPU, and an H100 with 16 cores. tests/settings/test_predictions.py holds them against
each run that was measured. A task of several turns or of longer pages takes longer; the line of
progress says by how much as soon as the first update is over.
"""

import os
from collections.abc import Iterator
from dataclasses import replace

from helpers.settings.errors import ProfileError
from helpers.settings.known_policies import POLICIES, PolicySpec
from helpers.settings.profiles import Profile

# Tokens of an episode of click-button: what all prompts begin with, the rest of one, an answer.
SHARED_TOKENS, PAGE_TOKENS, ANSWER_TOKENS = 196, 45, 8

# Memory, in bytes for each number and in GB.
BYTES_OF_A_WEIGHT = 4  # fp32, whatever training computes in
BYTES_OF_A_STEP = 4 + 8  # its gradient, and Adam's two moments
BYTES_OF_A_ROUNDED_COPY = 2  # that autocast makes of it
BYTES_OF_A_LOGIT = 4 * 4  # in fp32: itself, its softmax, and the gradients of both
ADAPTER_SHARE = 0.036 / 16  # of the weights, for each rank of LoRA
LIBRARIES_GB = 1.2  # Python with torch, transformers and vLLM; on a GPU its context
CPU_CACHE_GB = 1.0  # of vLLM on a CPU; on a GPU its share of the memory holds everything
GPU_VLLM_GB = 1.0  # what vLLM needs beside its weights: a cache, and room to compute
WORKER_GB = 0.35  # a browser process, measured on two cores
SESSION_GB = 0.05  # a session in it

# Seconds on two cores, with a policy of 135 million parameters.
CPU_START = 12  # loading, vLLM, browsers
CPU_UPDATE = 2.3  # optimiser, weights to vLLM, and what the prompts share
CPU_BROWSER = 0.03  # an episode of an update in the browser
CPU_POLICY = 0.075  # the same episode in the policy, in and out
CPU_EVALUATION = 0.1  # an episode of an evaluation
# Seconds on an H100 with 16 cores and four workers.
GPU_START = 45
GPU_UPDATE = 0.2
GPU_EPISODE = 0.0125
GPU_EVALUATION = 0.03
# What is arithmetic alone: the peak TFLOP/s of each GPU by the precision that training computes in,
# from NVIDIA's data sheets (without sparsity and TF32), of which a half is reached.
PEAK_TFLOPS = {
    "float32": {"t4": 8.1, "l4": 30.3, "a100": 19.5, "h100": 67.0},
    "bfloat16": {"l4": 121.0, "a100": 312.0, "h100": 989.0},
}
REACHED = 1 / 2
FLOPS_OF_A_WEIGHT = 8  # for each token: forward, twice that backward, once more the old logprobs


def predict(profile: Profile, lora: bool = False) -> dict[str, float]:
    """Predicted minutes and memory of a training run, start-up and evaluation included.

    Returns ``{"minutes": ..., "memory_gb": ...}``. With ``lora`` the adapters alone are trained.
    """
    return {
        "minutes": _minutes(profile),
        "memory_gb": sum(memory_parts(profile, lora).values()),
    }


def check_fits(profile: Profile, lora: bool = False) -> dict[str, float]:
    """`predict`, and a `ProfileError` where this machine cannot train so.

    Three things are refused: more memory than the machine has, a share of it for vLLM that cannot
    hold the policy, and fp16, whose range is too small for gradients without loss scaling (a GPU
    without bf16, a T4, trains in fp32). The sentence names what would fit.
    """
    if profile.dtype == "float16":
        raise ProfileError(
            "COURSE_DTYPE=float16 cannot be trained: use float32, or bfloat16 on a GPU that has it."
        )
    _check_share_of_vllm(profile)
    prediction = predict(profile, lora)
    if prediction["memory_gb"] <= profile.memory_gb:
        return prediction
    raise ProfileError(
        f"{profile.policy} needs about {prediction['memory_gb']:.1f} GB and this machine has "
        f"{profile.memory_gb:.1f} GB ({_largest(profile, lora)}): {_what_fits(profile, lora)}."
    )


def memory_parts(profile: Profile, lora: bool = False) -> dict[str, float]:
    """What the memory of a training run is taken by, in GB: the GPU's, on a CPU all of it.

    On a CPU ``browsers`` counts, which are processes of their own; else it is 0.
    """
    billions = _spec(profile).parameters_m / 1e3
    trained = billions * (ADAPTER_SHARE * profile.lora_rank if lora else 1)
    rounded = 0 if profile.dtype == "float32" else BYTES_OF_A_ROUNDED_COPY
    return {
        "weights": billions * BYTES_OF_A_WEIGHT,
        "optimiser": trained * (BYTES_OF_A_STEP + (BYTES_OF_A_WEIGHT if lora else 0)),
        "activations": _activations_gb(profile) + billions * rounded,
        "vllm": _vllm_gb(profile),
        "libraries": LIBRARIES_GB,
        "browsers": _browsers_gb(profile),
    }


def _spec(profile: Profile) -> PolicySpec:
    """What is known of the policy; one that the course does not know counts as 1,000 million."""
    return POLICIES.get(profile.policy, PolicySpec(profile.policy, parameters_m=1_000))


def _tokens(profile: Profile) -> int:
    """How many tokens one part of an update puts through the policy at once."""
    groups = profile.groups / profile.accumulate
    if _spec(profile).shares_prompts:
        answers = profile.group_size * ANSWER_TOKENS
        return round(SHARED_TOKENS + groups * (PAGE_TOKENS + answers))
    return round(groups * profile.group_size * (SHARED_TOKENS + PAGE_TOKENS + ANSWER_TOKENS))


def _activations_gb(profile: Profile) -> float:
    """What the forward pass of one part of an update keeps for the backward pass."""
    spec = _spec(profile)
    each = spec.activations_kb if profile.dtype == "float32" else spec.activations_kb_bf16
    answers = profile.batch / profile.accumulate * ANSWER_TOKENS
    return _tokens(profile) * each / 1e6 + answers * spec.vocabulary * BYTES_OF_A_LOGIT / 1e9


def _vllm_gb(profile: Profile) -> float:
    """vLLM's copy of the weights and its cache: on a GPU its share, whatever it needs of it."""
    if profile.generator != "vllm" or profile.vllm_server:
        return 0.0
    if profile.device == "cuda":
        return profile.vllm_memory * profile.memory_gb
    return _copy_gb(profile) + CPU_CACHE_GB


def _copy_gb(profile: Profile) -> float:
    """The policy in the precision in which vLLM samples."""
    bytes_each = 4 if profile.vllm_dtype == "float32" else 2
    return _spec(profile).parameters_m * bytes_each / 1e3


def _browsers_gb(profile: Profile) -> float:
    """Browsers share the memory of a CPU; a GPU has its own."""
    if profile.device == "cuda":
        return 0.0
    return profile.workers * WORKER_GB + profile.clients * SESSION_GB


def _check_share_of_vllm(profile: Profile) -> None:
    """Raise `ProfileError` where vLLM's share of a GPU cannot hold the policy and a cache."""
    share, needed = _vllm_gb(profile), _copy_gb(profile) + GPU_VLLM_GB
    if profile.device != "cuda" or not share or share >= needed:
        return
    enough = min(1.0, needed / profile.memory_gb + 0.05)
    raise ProfileError(
        f"vLLM needs about {needed:.1f} GB for {profile.policy} and COURSE_VLLM_MEMORY="
        f"{profile.vllm_memory:g} of {profile.memory_gb:.0f} GB is {share:.1f} GB: set "
        f"COURSE_VLLM_MEMORY={enough:.2f}, or COURSE_GENERATOR=transformers."
    )


def _largest(profile: Profile, lora: bool) -> str:
    """The two largest parts of the memory."""
    parts = memory_parts(profile, lora)
    largest = sorted(parts, key=lambda name: parts[name], reverse=True)[:2]
    return ", ".join(f"{name} {parts[name]:.1f}" for name in largest)


def _what_fits(profile: Profile, lora: bool) -> str:
    """What to set so that the machine's memory is enough: each way that is by itself."""
    ways = [
        words
        for words, changed, with_lora in _changes(profile, lora)
        if predict(changed, with_lora)["memory_gb"] <= profile.memory_gb
    ]
    if ways:
        return "set " + ", or ".join(ways)
    smallest = replace(profile, policy="smollm2-135m", generator="transformers", clients=4)
    least = predict(replace(smallest, accumulate=_most_parts(profile)), lora=True)["memory_gb"]
    return (
        "set COURSE_POLICY=smollm2-135m, COURSE_GENERATOR=transformers, COURSE_CLIENTS=4 and "
        f"COURSE_ACCUMULATE={_most_parts(profile)} together and train with LoRA, which needs "
        f"{least:.1f} GB"
    )


def _changes(profile: Profile, lora: bool) -> Iterator[tuple[str, Profile, bool]]:
    """Ways to need less memory, the ones that change least first: words, profile, LoRA."""
    parts = _most_parts(profile)
    for n in range(profile.accumulate + 1, parts + 1):
        if profile.groups % n == 0:
            yield f"COURSE_ACCUMULATE={n}", replace(profile, accumulate=n), lora
    if profile.device == "cpu" and profile.clients > 8:
        yield "COURSE_CLIENTS=8", replace(profile, clients=8), lora
    if not lora:
        yield "--lora (make: LORA=1)", profile, True
    if profile.generator == "vllm":
        without = replace(profile, generator="transformers")
        yield "COURSE_GENERATOR=transformers", without, lora
    if profile.policy != "smollm2-135m":
        yield "COURSE_POLICY=smollm2-135m", replace(profile, policy="smollm2-135m"), lora


def _most_parts(profile: Profile) -> int:
    """Into how many parts an update can be cut: one for each group."""
    return max(profile.groups, profile.accumulate)


def _minutes(profile: Profile) -> float:
    """Start-up, updates, and an evaluation before and after."""
    on_gpu = profile.device == "cuda"
    start = GPU_START if on_gpu else CPU_START
    evaluation = 2 * profile.eval_episodes * (GPU_EVALUATION if on_gpu else CPU_EVALUATION)
    return (start + profile.updates * update_seconds(profile) + evaluation) / 60


def update_seconds(profile: Profile) -> float:
    """Predicted seconds of one update, in the mean of a run."""
    return _gpu_update(profile) if profile.device == "cuda" else _cpu_update(profile)


def _cpu_update(profile: Profile) -> float:
    """Seconds of an update on a CPU: the work by its cores, that of the policy by its size."""
    speed = max(1, (os.cpu_count() or 2) / 2)  # against the two cores that were measured
    size = _spec(profile).parameters_m / 135
    return (size * CPU_UPDATE + profile.batch * (CPU_BROWSER + size * CPU_POLICY)) / speed


def _gpu_update(profile: Profile) -> float:
    """Seconds of an update on a GPU: what the H100 took, and the arithmetic of the policy."""
    tokens = _tokens(profile) * profile.accumulate
    flops = FLOPS_OF_A_WEIGHT * _spec(profile).parameters_m * 1e6 * tokens
    peaks = PEAK_TFLOPS.get(profile.dtype, PEAK_TFLOPS["float32"])
    peak = peaks.get(profile.name, min(peaks.values())) * 1e12
    return GPU_UPDATE + profile.batch * GPU_EPISODE + flops / (peak * REACHED)
