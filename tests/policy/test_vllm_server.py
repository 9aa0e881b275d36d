"""vLLM on hardware of its own: the course samples through a real vLLM server, here on a CPU.

What needs GPUs is not tested: TRL sends the new weights to such a server with NCCL, which a CPU
does not have.
"""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from types import SimpleNamespace

import pytest
from logprobs import largest_gap, recomputed_logprobs

from helpers.episodes.how_played import rollout_config
from helpers.episodes.play import play_episodes
from helpers.episodes.tasks import VALIDATION_SEEDS, specs
from helpers.policy.choosing import trainer_generator
from helpers.policy.loading import policy_path
from helpers.policy.vllm_engine import VLLMServerGenerator
from helpers.settings.machine import vllm_problem

pytestmark = [
    pytest.mark.slow,  # the server takes half a minute to start
    pytest.mark.skipif(bool(vllm_problem()), reason=vllm_problem()),
]


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    """Where the server answers; what it logs is shown if it does not start."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = tmp_path_factory.mktemp("vllm") / "log"
    with log.open("w") as file:
        server = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "vllm.entrypoints.openai.api_server",
                "--model",
                policy_path("smollm2-135m"),
                "--dtype",
                "float32",
                "--host",
                "127.0.0.1",
                "--port",
                str(port),
                "--max-model-len",
                "1536",
                "--enforce-eager",
                "--logprobs-mode",
                "processed_logprobs",
            ],
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env=os.environ | {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_NO_USAGE_STATS": "1"},
        )
    try:
        end = time.monotonic() + 240
        while True:
            assert server.poll() is None and time.monotonic() < end, log.read_text()[-3_000:]
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=2)
                break
            except OSError:
                time.sleep(0.5)
        yield f"http://127.0.0.1:{port}"
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        try:
            server.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(server.pid, signal.SIGKILL)
            server.wait()


def test_episodes_sampled_on_a_server_are_the_sequence_that_is_trained_on(url, policy, browsers):
    trainer = SimpleNamespace(
        use_vllm=True, vllm_mode="server", args=SimpleNamespace(vllm_server_base_url=url)
    )
    sampler = trainer_generator(trainer, policy.tokenizer)
    assert isinstance(sampler, VLLMServerGenerator)
    pages = specs("click-option", VALIDATION_SEEDS, 6)
    config = rollout_config("click-option")
    episodes = play_episodes(pages, browsers, sampler, policy.tokenizer, config)
    assert all(e.reward is not None and e.turns for e in episodes)
    gaps = [largest_gap(policy.model, e) for e in episodes]
    print(f"largest gap through the server: {max(gaps):.1e} over {len(gaps)} episodes")
    assert max(gaps) <= 1e-3


def test_a_server_samples_at_temperature_1_and_is_greedy_at_0(url, policy):
    sampler = VLLMServerGenerator(url)
    prompt = policy.tokenizer("My favourite colour is")["input_ids"]
    assert len({tuple(c.ids) for c in sampler.generate([prompt] * 8, 8, 1.0)}) >= 4
    greedy = sampler.generate([prompt] * 3, 8, 0.0)
    assert len({tuple(c.ids) for c in greedy}) == 1
    for token, logprob in zip(greedy[0].ids, greedy[0].logprobs, strict=True):
        again = recomputed_logprobs(policy.model, [*prompt, token])
        assert logprob == pytest.approx(again[-1], abs=1e-3)
        prompt.append(token)
