"""What this machine can do, as one `Profile` that every notebook reads; `setup` is the first call of each notebook.

``COURSE_PROFILE`` picks a profile, ``COURSE_SCALE`` = smoke, demo or full scales it, and every field can be overridden by an
environment variable of its name: ``COURSE_UPDATES=40``, ``COURSE_POLICY=lfm2-350m``, ``COURSE_GENERATOR=transformers``.
"""

import os

from helpers.settings.known_policies import POLICIES
from helpers.settings.profiles import Profile, ProfileError


def predict(profile: Profile, lora: bool = False) -> dict[str, float]:
    """Predicted minutes of a training run and memory in GB, start-up and evaluation included.

    Memory: weights, and for what is trained gradients and two Adam moments in fp32; vLLM's own copy of the weights and its
    cache; 0.35 GB per browser worker and 0.05 per session (measured, 2 cores). Time on a CPU: 0.25 s per episode of a click
    task with 135 million parameters on two cores (measured), 0.06 of it in the browser; on a GPU it is a guess until a
    recording replaces it.
    """
    millions = POLICIES[profile.policy].parameters_m if profile.policy in POLICIES else 1_000
    bytes_each = 4 if profile.dtype == "float32" else 2
    weights = millions * bytes_each / 1e3
    training = 0.1 * weights if lora else millions * (bytes_each + 8) / 1e3
    vllm = (weights + 1.0) if profile.generator == "vllm" else 0.5
    browsers = profile.workers * 0.35 + profile.clients * 0.05
    memory = weights + training + vllm + 1.5 + (browsers if profile.device == "cpu" else 0.0)
    two_cores = max(1, (os.cpu_count() or 2) / 2)
    episode = (0.06 + 0.19 * millions / 135) / two_cores if profile.device == "cpu" else 0.1
    update = profile.batch * episode + 0.5
    evaluation = profile.eval_episodes * 2 * (0.35 if profile.device == "cpu" else 0.1)
    start = 45 if profile.generator == "vllm" else 10
    return {"minutes": (start + profile.updates * update + evaluation) / 60, "memory_gb": memory}


def check_fits(profile: Profile, lora: bool = False) -> dict[str, float]:
    """`predict`, and a `ProfileError` where the prediction exceeds the machine's memory, or where fp16 would be trained: its
    range is too small for gradients without loss scaling, so a GPU without bf16 (a T4) trains in fp32."""
    if profile.dtype not in ("float32", "bfloat16"):
        raise ProfileError(
            f"COURSE_DTYPE={profile.dtype} cannot be trained: use float32, or bfloat16 on a GPU that has it."
        )
    prediction = predict(profile, lora)
    if prediction["memory_gb"] > profile.memory_gb:
        raise ProfileError(
            f"{profile.policy} needs about {prediction['memory_gb']:.1f} GB and this machine has "
            f"{profile.memory_gb:.1f} GB: set COURSE_POLICY=smollm2-135m, or COURSE_GENERATOR=transformers and a "
            "smaller COURSE_CLIENTS."
        )
    return prediction
