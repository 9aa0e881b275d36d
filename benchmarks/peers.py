"""TRL's own BrowserGym examples, with upstream's own client, on a server of this course.

    python -m benchmarks.peers                                   fetches both repositories with git
    python -m benchmarks.peers --trl FOLDER --openenv FOLDER     takes checkouts that are here

Each example makes one update. Its file is as TRL has it; it is told our server's address, which is
the one changed line. What two cores without a model hub cannot do is put in its place: vLLM is off,
the model is a small one, and what it answers is scripted, for random weights call no tool. So it
shows that the two talk to each other, pictures included, and not that anything is learnt.
"""

import importlib
import json
import runpy
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated, Any

import torch
import trl
import typer
from transformers import AutoTokenizer, PreTrainedModel
from trl.chat_template_utils import qwen3_chat_template
from typing_extensions import override

from benchmarks.recording import Record, record
from helpers.browser import BrowserServer, start_browser_server
from helpers.command_line import run
from helpers.policy.loading import load_policy
from helpers.policy.vision import small_policy_with_eyes
from helpers.settings.errors import CourseError
from helpers.settings.machine import run_facts

TRL = "https://github.com/huggingface/trl"
OPENENV = "https://github.com/meta-pytorch/OpenEnv"
EXAMPLES = {"browsergym_llm": "text", "browsergym": "pictures"}
# Of batches of the size that each has by default, so that an update is whole groups.
ACCUMULATION = {"browsergym_llm": 4, "browsergym": 1}
FOLDER = "examples/scripts/openenv"  # of TRL's repository
CLIENT = "envs/browsergym_env"  # of OpenEnv's
GROUP = 4
CALLS_TIMED = 15
# The tool calls of the episodes. The last one misses the button in every other episode, so that
# there is something to learn.
CALLS: tuple[tuple[str, dict[str, str]], ...] = (("noop", {}), ("click", {"bid": "13"}))
MISS = {"bid": "99"}
# Of the examples' settings those that ask for a GPU, a server of vLLM's or a Space.
NOT_HERE = (
    "use_vllm",
    "vllm_mode",
    "vllm_server_base_url",
    "vllm_gpu_memory_utilization",
    "trackio_space_id",
)
IN_THEIR_PLACE = {
    "use_vllm": False,
    "use_cpu": True,
    "bf16": False,
    "report_to": [],
    "max_steps": 1,
    "warmup_steps": 0,
    "max_completion_length": 2_500,
    "log_completions": False,
    "logging_steps": 1,
    "save_strategy": "no",
}
Trainer = trl.GRPOTrainer
Config = trl.GRPOConfig


def config(**settings: Any) -> trl.GRPOConfig:
    """TRL's settings of an example, for one update on a CPU."""
    kept = {name: value for name, value in settings.items() if name not in NOT_HERE}
    return Config(**kept | IN_THEIR_PLACE)


class ScriptedTrainer(Trainer):
    """TRL's trainer, whose policy says what stands in `CALLS`. The class counts what it was given:
    pictures in the loss, and weights that the update moved."""

    reads: str  # "text" or "pictures"
    counts: dict[str, Any]

    def __init__(self, model: str, **others: Any) -> None:
        """``model`` is the example's, which only a hub has; a small one takes its place."""
        self.small, processor = self._reader()
        super().__init__(model=self.small, processing_class=processor, **others)
        self.turn = 0
        self.before = {name: weight.clone() for name, weight in self.small.named_parameters()}

    def _reader(self) -> tuple[PreTrainedModel, Any]:
        if self.reads == "pictures":
            return small_policy_with_eyes()
        policy = load_policy()
        tokenizer = AutoTokenizer.from_pretrained(policy.path)
        tokenizer.chat_template = qwen3_chat_template
        return policy.model, tokenizer

    @override
    def _generate_single_turn(self, prompt_ids: list[list[int]], *_: Any, **__: Any) -> Any:
        tokenizer: Any = getattr(self.processing_class, "tokenizer", self.processing_class)
        self.counts["prompts"].append(tokenizer.decode(prompt_ids[0]))
        answers = [self._answer(row) for row in range(len(prompt_ids))]
        self.turn += 1
        return [tokenizer(f"{answer}<|im_end|>")["input_ids"] for answer in answers], None

    def _answer(self, row: int) -> str:
        if self.turn >= len(CALLS):
            return "Done."
        name, arguments = CALLS[self.turn]
        if name == "click" and row % 2:
            arguments = MISS
        call = json.dumps({"name": name, "arguments": arguments})
        return f"<tool_call>\n{call}\n</tool_call>"

    @override
    def _compute_loss(self, model: Any, inputs: dict[str, Any]) -> torch.Tensor:
        self.counts["pictures_in_the_loss"] += len(inputs.get("image_grid_thw", ()))
        return super()._compute_loss(model, inputs)

    @override
    def train(self, *arguments: Any, **named: Any) -> Any:
        """Train, and count what has moved."""
        done = super().train(*arguments, **named)
        [logged] = [row for row in self.state.log_history if "reward" in row]
        now = dict(self.small.named_parameters())
        self.counts["weights_moved"] = sum(
            bool((now[name] != weight).any()) for name, weight in self.before.items()
        )
        self.counts.update(weights=len(self.before), reward=logged["reward"])
        return done


def checkout(source: str, path: str, target: Path) -> str:
    """Fetch what lies under ``path`` of a repository, a URL or a folder; returns its commit.
    `CourseError` where git cannot."""
    as_little = ("--shared", "--no-checkout", "--filter=blob:none", "--depth=1")
    here = ("-C", str(target))
    git("clone", "-q", *as_little, source, str(target))
    git(*here, "checkout", "-q", "HEAD", "--", path)
    return git(*here, "rev-parse", "HEAD")


def git(*words: str) -> str:
    """What git answers."""
    asked = subprocess.run(["git", *words], capture_output=True, text=True)
    if asked.returncode:
        why = asked.stderr.strip().rpartition("\n")[2]
        raise CourseError(
            f"git could not fetch an example ({why}): give --trl and"
            f" --openenv checkouts of {TRL} and {OPENENV} that are on this machine."
        )
    return asked.stdout.strip()


def play(example: str, script: Path, server: BrowserServer, output: Path) -> dict[str, Any]:
    """Run an example; returns what its update was made of."""
    counts: dict[str, Any] = {"prompts": [], "pictures_in_the_loss": 0}
    ScriptedTrainer.reads = EXAMPLES[example]
    ScriptedTrainer.counts = counts
    options = {
        "--space-url": server.url_with_token,
        "--dataset-size": 2 * GROUP,
        "--num-generations": GROUP,
        "--gradient-accumulation-steps": ACCUMULATION[example],
        "--learning-rate": 1e-3,
        "--output-dir": output,
    }
    before = server.stats()["episodes"]
    sys.argv = [script.name, *(str(word) for pair in options.items() for word in pair)]
    runpy.run_path(str(script), run_name="__main__")
    prompts = counts.pop("prompts")
    counts["page_in_the_prompt"] = "button 'Click Me!'" in prompts[1]
    counts["turns"] = len(prompts) - 1  # the last answer calls no tool
    counts["episodes"] = server.stats()["episodes"] - before
    return counts


def step_milliseconds(server: BrowserServer) -> dict[str, float]:
    """The median time of a step with upstream's client: by default calls, and without pictures,
    which travel as lists of numbers; in turns."""
    client_of = importlib.import_module("browsergym_env")
    times: dict[str, list[float]] = {"default": [], "no picture": []}
    for _ in range(CALLS_TIMED):
        for how, wanted in (("default", {}), ("no picture", {"screenshot": False})):
            with client_of.BrowserGymEnv(base_url=server.url_with_token).sync() as client:
                client.reset(task_name="click-test", seed=1, **wanted)
                begin = time.monotonic()
                client.step(client_of.BrowserGymAction(action_str="noop(1)"))
                times[how].append(1000 * (time.monotonic() - begin))
    return {how: round(statistics.median(taken)) for how, taken in times.items()}


def main(
    trl_source: Annotated[str, typer.Option("--trl", help="TRL's repository")] = TRL,
    openenv_source: Annotated[str, typer.Option("--openenv", help="OpenEnv's")] = OPENENV,
    record_it: Record = False,
) -> int:
    """TRL's own BrowserGym examples, one update each, on a server of this course."""
    with tempfile.TemporaryDirectory() as folder, start_browser_server(workers=2) as server:
        trl_folder, openenv_folder = Path(folder, "trl"), Path(folder, "openenv")
        commits = {
            "trl": checkout(trl_source, FOLDER, trl_folder),
            "openenv": checkout(openenv_source, CLIENT, openenv_folder),
        }
        sys.path.insert(0, str(openenv_folder / "envs"))  # upstream's client is found there
        trl.GRPOConfig, trl.GRPOTrainer = config, ScriptedTrainer
        found = {}
        for example in EXAMPLES:
            script = trl_folder / FOLDER / f"{example}.py"
            found[example] = play(example, script, server, Path(folder, "output"))
            print(f"{example}: {found[example]}", flush=True)
        milliseconds = step_milliseconds(server)
        print(f"milliseconds of a step, n = {CALLS_TIMED}: {milliseconds}")
    if record_it:
        timed = {"n": CALLS_TIMED, "step_milliseconds": milliseconds}
        record("peers", {"commits": commits, "examples": found} | timed | run_facts())
    return 0


if __name__ == "__main__":
    sys.exit(run(main))
