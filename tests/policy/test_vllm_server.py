"""vLLM on hardware of its own: the course samples and trains through a real vLLM server, here on a
CPU.

What needs GPUs is not tested: NCCL, over which the weights go there. On a CPU they go through a
folder; the server, its options but one, TRL's client and the trainer are the same.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import pytest
from logprobs import largest_gap, recomputed_logprobs
from patience import LONG_PATIENCE, PATIENCE

from helpers.episodes.how_played import rollout_config
from helpers.episodes.play import play_episodes
from helpers.episodes.tasks import VALIDATION_SEEDS, specs
from helpers.learning.recorder import read_metrics
from helpers.policy.choosing import trainer_generator
from helpers.policy.generators import GenerationError
from helpers.policy.vllm_engine import free_port
from helpers.policy.vllm_server import VLLMServerGenerator, server_command, weights_to_server
from helpers.settings.machine import vllm_problem
from helpers.settings.paths import ROOT
from helpers.settings.profiles import PROFILES

pytestmark = pytest.mark.skipif(bool(vllm_problem()), reason=vllm_problem())


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    """Where ``make serve`` answers; what it logs is shown if it does not start."""
    port = free_port()
    log = tmp_path_factory.mktemp("vllm") / "log"
    command = [sys.executable, "-m", "scripts.serve", "--policy", "smollm2-135m", "--port"]
    with log.open("w") as file:
        server = subprocess.Popen(
            [*command, str(port)],
            cwd=ROOT,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        end = time.monotonic() + PATIENCE
        while True:
            assert server.poll() is None and time.monotonic() < end, log.read_text()[-3_000:]
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=2)
                break
            except OSError:
                time.sleep(0.5)
        yield f"http://127.0.0.1:{port}"
    finally:
        if server.poll() is None:
            os.killpg(server.pid, signal.SIGTERM)
        try:
            server.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(server.pid, signal.SIGKILL)
            server.wait()


@pytest.mark.slow  # the server takes half a minute to start
def test_episodes_sampled_on_a_server_are_the_sequence_that_is_trained_on(url, policy, browsers):
    trainer = SimpleNamespace(
        use_vllm=True, vllm_mode="server", args=SimpleNamespace(vllm_server_base_url=url)
    )
    sampler = trainer_generator(trainer, policy.tokenizer)
    assert isinstance(sampler, VLLMServerGenerator)
    pages = specs("click-option", VALIDATION_SEEDS, 4)
    config = rollout_config("click-option")
    episodes = play_episodes(pages, browsers, sampler, policy.tokenizer, config)
    assert all(e.reward is not None and e.turns for e in episodes)
    gaps = [largest_gap(policy.model, e) for e in episodes]
    print(f"largest gap through the server: {max(gaps):.1e} over {len(gaps)} episodes")
    assert max(gaps) <= 1e-3


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_server_samples_from_the_weights_that_are_trained(url, tmp_path):
    """With LoRA, whose adapters are merged on the way. It comes last: the server then has the
    weights of this run."""
    settings = {
        "COURSE_SCALE": "smoke",
        "COURSE_EVAL_EPISODES": "1",
        "COURSE_LEARNING_RATE": "1e-4",
        "COURSE_WARMUP": "0",
        "COURSE_ENTROPY": "0.05",  # it moves the weights even where a tiny group ends alike
        "COURSE_GENERATOR": "vllm",
        "COURSE_VLLM_SERVER": url,
    }
    done = subprocess.run(
        [sys.executable, "-m", "scripts.train", "--no-before", "--output", tmp_path, "--lora"],
        cwd=ROOT,
        text=True,
        capture_output=True,
        env={**os.environ, **settings},
        timeout=LONG_PATIENCE,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    rows = read_metrics(tmp_path)
    assert [row["update"] for row in rows] == [1, 2]
    assert all(row["grad_norm"] > 0 for row in rows)
    # Each update begins with new weights for the server: in the second one the logprobs agree only
    # if those of the first have arrived.
    assert all(row["logprob_gap/max"] < 1e-3 for row in rows)


@pytest.mark.parametrize("name", list(PROFILES))
def test_vllm_takes_every_option_that_the_server_is_started_with(name):
    """Also those of a GPU, where it is not started here."""
    from vllm.entrypoints.launchers.cli_args import make_arg_parser
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    words = server_command("a/model", PROFILES[name], "127.0.0.1", 8123, 1_536)
    parser = make_arg_parser(FlexibleArgumentParser())
    if PROFILES[name].device == "cuda":
        options = parser.parse_args(words[words.index("serve") + 1 :])
        assert options.model_tag == "a/model"
    else:
        options = parser.parse_args(words[words.index("--model") :])
        assert options.model == "a/model"
    assert options.port == 8123
    assert options.dtype == PROFILES[name].vllm_dtype
    assert options.logprobs_mode == "processed_logprobs"
    if PROFILES[name].device == "cuda":
        assert options.weight_transfer_config.backend == "nccl"
        assert not options.enforce_eager
    else:
        assert options.weight_transfer_config is None
        assert options.worker_extension_cls.endswith("FolderWorker")


class OtherServer(BaseHTTPRequestHandler):
    """A vLLM server that was started without what new weights need."""

    def do_GET(self):
        known = {"/health": {}, "/v1/models": {"data": [{"id": "a/model"}]}}
        if self.server.develops:
            parallel = {"worker_extension_cls": ""}
            config = {"weight_transfer_config": None, "parallel_config": parallel}
            known["/server_info"] = {"vllm_config": config}
        path = self.path.partition("?")[0]
        content = json.dumps(known.get(path)).encode()
        self.send_response(200 if path in known else 404)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


@pytest.fixture(params=[True, False], ids=["no weight transfer", "no development endpoints"])
def other_server(request):
    """Where such a server answers."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), OtherServer)
    server.develops = request.param
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def connect(url, device):
    """What a trainer on this device does with its server before it trains."""
    from helpers.policy.trl_parts import vllm_generation

    with weights_to_server(replace(PROFILES["cpu"], device=device, vllm_server=url)):
        vllm_generation.VLLMClient(base_url=url).init_communicator(device=device)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_server_that_takes_no_weights_is_refused_in_a_sentence(other_server, device):
    with pytest.raises(GenerationError, match=r"takes no new weights: start it with `make serve`"):
        connect(other_server, device)


def test_no_server_is_a_sentence_that_names_the_mend():
    url = f"http://127.0.0.1:{free_port()}"
    for ask in (VLLMServerGenerator, lambda url: connect(url, "cpu")):
        with pytest.raises(GenerationError, match=r"No vLLM server answers at .*`make serve`"):
            ask(url)
