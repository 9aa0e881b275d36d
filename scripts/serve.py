"""Serve a policy with vLLM on hardware of its own, for training elsewhere. ``make serve`` calls it.

    CUDA_VISIBLE_DEVICES=0 make serve                  in one terminal, on the first GPU
    CUDA_VISIBLE_DEVICES=1 COURSE_VLLM_SERVER=http://127.0.0.1:8000 make train      in another one

Both commands have to be told the same policy. It is vLLM's own server, with the options that the
course's episodes and new weights need (`helpers.policy.vllm_server` says which, and why). Its
development endpoints are open, so it answers on this machine alone: who can reach them can do
anything with it. On a CPU it works as well, which is how it is tested.
"""

import os
import sys
from typing import Annotated

import typer

from helpers.command_line import run
from helpers.episodes.how_played import episode_config
from helpers.policy.generators import GenerationError
from helpers.policy.loading import load_policy
from helpers.policy.vllm_engine import compile_nothing_on_a_cpu
from helpers.policy.vllm_server import server_command, server_environment
from helpers.settings.machine import vllm_problem
from scripts.options import PolicyOption, chosen_profile


def main(
    policy: PolicyOption = None,
    host: Annotated[str, typer.Option(help="the address it answers on")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="the port it answers on")] = 8000,
) -> None:
    """Serve a policy with vLLM, for a trainer elsewhere on this machine."""
    profile = chosen_profile(policy)
    problem = vllm_problem()
    if problem:
        raise GenerationError(problem)
    path = load_policy(profile.policy, weights=False).path
    max_length = episode_config(profile).max_length
    command = server_command(path, profile, host, port, max_length)
    compile_nothing_on_a_cpu()
    os.execve(command[0], command, server_environment())


if __name__ == "__main__":
    sys.exit(run(main))
