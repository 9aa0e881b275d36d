"""What a training run will take, minutes and memory, before it is started."""

import os

from helpers.settings.errors import ProfileError
from helpers.settings.known_policies import POLICIES
from helpers.settings.profiles import Profile

BYTES_OF_ADAM = 8  # two moments in fp32 for each trained parameter
WORKER_GB = 0.35  # a browser process, measured on two cores
SESSION_GB = 0.05  # a session in it
BROWSER_SECONDS = 0.06  # an episode of a click task in the browser, on two cores
POLICY_SECONDS = 0.19  # the same episode in a policy of 135 million parameters, in and out
GPU_EPISODE_SECONDS = 0.1  # a guess until a recording replaces it


def predict(profile: Profile, lora: bool = False) -> dict[str, float]:
    """Predicted minutes and memory of a training run, start-up and evaluation included.

    Returns ``{"minutes": ..., "memory_gb": ...}``. With ``lora`` the adapters alone are trained.
    """
    return {
        "minutes": _minutes(profile),
        "memory_gb": _memory_gb(profile, lora),
    }


def check_fits(profile: Profile, lora: bool = False) -> dict[str, float]:
    """`predict`, and a `ProfileError` where this machine cannot train so.

    Two things are refused: more memory than the machine has, and fp16, whose range is too small
    for gradients without loss scaling (a GPU without bf16, a T4, trains in fp32).
    """
    if profile.dtype == "float16":
        raise ProfileError(
            "COURSE_DTYPE=float16 cannot be trained: use float32, or bfloat16 on a GPU that has it."
        )
    prediction = predict(profile, lora)
    if prediction["memory_gb"] > profile.memory_gb:
        raise ProfileError(
            f"{profile.policy} needs about {prediction['memory_gb']:.1f} GB and this machine has "
            f"{profile.memory_gb:.1f} GB: set COURSE_POLICY=smollm2-135m, or "
            "COURSE_GENERATOR=transformers and a smaller COURSE_CLIENTS."
        )
    return prediction


def _parameters_m(profile: Profile) -> int:
    """Millions of parameters of the policy; a policy that the course does not know counts 1,000."""
    known = POLICIES.get(profile.policy)
    return known.parameters_m if known else 1_000


def _memory_gb(profile: Profile, lora: bool) -> float:
    """Weights, what training adds (gradients and Adam's moments), vLLM's own copy of the weights
    and its cache, the libraries, and on a CPU the browsers, which share its memory."""
    millions = _parameters_m(profile)
    bytes_each = 4 if profile.dtype == "float32" else 2
    weights = millions * bytes_each / 1e3
    training = 0.1 * weights if lora else millions * (bytes_each + BYTES_OF_ADAM) / 1e3
    generator = weights + 1.0 if profile.generator == "vllm" else 0.5
    browsers = 0.0
    if profile.device == "cpu":
        browsers = profile.workers * WORKER_GB + profile.clients * SESSION_GB
    return weights + training + generator + 1.5 + browsers


def _minutes(profile: Profile) -> float:
    """Start-up, updates, and an evaluation before and after."""
    start = 45 if profile.generator == "vllm" else 10
    evaluated = profile.eval_episodes * 2
    if profile.device == "cpu":
        speed = max(1, (os.cpu_count() or 2) / 2)  # against the two cores that were measured
        policy = POLICY_SECONDS * _parameters_m(profile) / 135
        episode = (BROWSER_SECONDS + policy) / speed
        evaluation = evaluated * 0.35
    else:
        episode = GPU_EPISODE_SECONDS
        evaluation = evaluated * 0.1
    update = profile.batch * episode + 0.5
    return (start + profile.updates * update + evaluation) / 60
