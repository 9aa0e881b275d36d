"""A training run on a rented GPU, with Modal: one command, nothing to keep running.

    pip install modal && modal setup
    modal run deploy/cloud/modal_app.py --task click-button --updates 150
    COURSE_GPU=A100 PRESET=lfm2-lora modal run deploy/cloud/modal_app.py

The image is built once: the repository with its set-up in it. What a run writes lies in the volume
``browser-rl-runs``: ``modal volume get browser-rl-runs /``. Variables that begin with COURSE_, and
PRESET, go along.
"""

import os
import subprocess
from pathlib import Path

import modal

ROOT = Path(__file__).resolve().parents[2]
LEFT_HERE = [".git", ".venv", ".cache", "runs", "build", "**/__pycache__"]


def settings_of_this_shell() -> dict[str, str]:
    """The variables that go along: COURSE_... and PRESET."""
    return {
        name: value
        for name, value in os.environ.items()
        if name == "PRESET" or name.startswith("COURSE_")
    }


image = (
    modal.Image.debian_slim(python_version="3.11")
    .apt_install("make", "git", "build-essential")
    .add_local_dir(ROOT, "/course", copy=True, ignore=LEFT_HERE)
    .run_commands("cd /course && COURSE_DEVICE=gpu make setup")
)
runs = modal.Volume.from_name("browser-rl-runs", create_if_missing=True)
app = modal.App("browser-rl-course", image=image)


@app.function(
    gpu=os.environ.get("COURSE_GPU", "L4"),
    cpu=8,
    memory=32_768,
    timeout=6 * 3_600,
    volumes={"/course/runs": runs},
)
def train(arguments: list[str], settings: dict[str, str]) -> int:
    """``make train`` in the image; returns its exit code.

    The volume keeps what the run has written, also where it failed.
    """
    environment = os.environ | settings | {"COURSE_DEVICE": "gpu"}
    try:
        return subprocess.run(
            ["make", "train", *arguments], cwd="/course", env=environment
        ).returncode
    finally:
        runs.commit()


@app.local_entrypoint()
def main(
    task: str = "", policy: str = "", updates: int = 0, lora: bool = False, name: str = "modal"
) -> None:
    """Train, and say how it ended."""
    given = {
        "TASK": task,
        "POLICY": policy,
        "UPDATES": str(updates or ""),
        "LORA": "1" if lora else "",
        "OUT": f"runs/{name}",
    }
    arguments = [f"{key}={value}" for key, value in given.items() if value]
    code = train.remote(arguments, settings_of_this_shell())
    print("finished" if code == 0 else f"failed with exit code {code}; the log is above")
