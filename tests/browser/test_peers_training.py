"""One update of TRL's trainer on a server of ours, through environments written as those of TRL's
browsergym examples: they know an address and upstream's client, and nothing of this course."""

import json

import numpy
import pytest
from datasets import Dataset
from peer_client import BrowserGymEnv, act
from PIL import Image
from tiny_models import remember_batches, tiny_tool_caller
from trl import GRPOConfig, GRPOTrainer

from helpers.policy.vision import small_policy_with_eyes

LARGEST = 512  # pixels of a side, to which the vision example shrinks a picture
GROUP = 4
PROMPT = [
    {"role": "system", "content": "Use the tools to do the task in the browser."},
    {"role": "user", "content": "Do the task."},
]


class TextEnvironment:
    """One episode, whose tools answer with the page in text."""

    address = ""

    def __init__(self):
        self.client = BrowserGymEnv(base_url=self.address)
        self.reward = 0.0
        self.done = False

    def reset(self, **_) -> str:
        result = self.client.reset(task_name="click-test")
        self.reward = 0.0
        self.done = result.done
        return self._shown(result.observation)

    def click(self, bid: str) -> str:
        """Click an element on the page.

        Args:
            bid: The number of the element.

        Returns:
            The page after it.
        """
        return self._act(f"click('{bid}')")

    def send_keys(self, text: str) -> str:
        """Type on the keyboard.

        Args:
            text: What to type.

        Returns:
            The page after it.
        """
        return self._act(f"send_keys('{text}')")

    def _act(self, text):
        if self.done:
            raise ValueError("The episode is over.")
        result = act(self.client, text)
        self.done = result.done
        self.reward = float(result.reward or 0.0)
        return self._told(result.observation)

    def _told(self, seen):
        return self._shown(seen)

    def _shown(self, seen):
        error = f"Error: {seen.error}\n" if seen.last_action_error else ""
        return f"Goal: {seen.goal}\n{error}Page:\n{seen.axtree_txt}"


class VisionEnvironment(TextEnvironment):
    """Its tools answer with a picture before the text, where one came."""

    sizes = []

    def _told(self, seen):
        blocks = [{"type": "text", "text": self._shown(seen)}]
        if seen.screenshot is not None:
            picture = Image.fromarray(numpy.array(seen.screenshot, dtype=numpy.uint8))
            self.sizes.append(picture.size)
            picture.thumbnail((LARGEST, LARGEST))
            blocks.insert(0, {"type": "image", "image": picture})
        return blocks


@pytest.fixture
def scripted(monkeypatch):
    """What the policy writes: keys that do not exist, then a click; every other episode misses the
    button. A model of random weights would call no tool. Returns all prompts of the group's first
    episode, as text."""
    prompts = []

    def answer(trainer, prompt_ids, *_, **__):
        tokenizer = getattr(trainer.processing_class, "tokenizer", trainer.processing_class)
        texts = [tokenizer.decode(ids) for ids in prompt_ids]
        prompts.append(texts[0])
        turn = len(prompts) - 1
        calls = (("send_keys", {"text": "Enter"}), ("click", {"bid": "13"}))
        written = []
        for row in range(len(texts)):
            text = "Done."
            if turn < len(calls):
                name, arguments = calls[turn]
                if name == "click" and row % 2:
                    arguments = {"bid": "99"}
                call = json.dumps({"name": name, "arguments": arguments})
                text = f"<tool_call>\n{call}\n</tool_call>"
            written.append(tokenizer(f"{text}<|im_end|>")["input_ids"])
        return written, None

    monkeypatch.setattr(GRPOTrainer, "_generate_single_turn", answer)
    return prompts


def reward(environments, **_):
    return [environment.reward for environment in environments]


@pytest.mark.slow
@pytest.mark.parametrize("environment", [TextEnvironment, VisionEnvironment])
def test_one_update_as_trls_examples_make_it(
    environment, server, policy, scripted, monkeypatch, tmp_path
):
    monkeypatch.setattr(TextEnvironment, "address", server.url_with_token)  # the one changed line
    monkeypatch.setattr(VisionEnvironment, "sizes", [])
    sees = environment is VisionEnvironment
    model, processor = small_policy_with_eyes() if sees else tiny_tool_caller(policy)
    trainer = GRPOTrainer(
        model=model,
        processing_class=processor,
        reward_funcs=reward,
        train_dataset=Dataset.from_dict({"prompt": [PROMPT] * GROUP}),
        args=GRPOConfig(
            output_dir=str(tmp_path),
            use_cpu=True,
            bf16=False,
            max_steps=1,
            learning_rate=1e-3,
            num_generations=GROUP,
            per_device_train_batch_size=GROUP,
            max_completion_length=2_000,
            report_to=[],
            disable_tqdm=True,
            chat_template_kwargs={"enable_thinking": False},
        ),
        environment_factory=environment,
    )
    before = {name: weight.clone() for name, weight in model.named_parameters()}
    batches = remember_batches(trainer)
    trainer.train()
    assert len(scripted) == 3
    assert "Goal: Click the button." in scripted[0]
    assert "there is no action 'send_keys'; use one of: click, fill" in scripted[1]
    [logged] = [row for row in trainer.state.log_history if "reward" in row]
    assert (logged["reward"], logged["tools/failure_frequency"]) == (0.5, 0.0)
    moved = [name for name, weight in model.named_parameters() if (weight != before[name]).any()]
    assert moved
    pictures = 2 * GROUP if sees else 0  # one for each action
    assert VisionEnvironment.sizes == [(498, 321)] * pictures
    grids = [len(batch["image_grid_thw"]) for batch in batches if "image_grid_thw" in batch]
    assert sum(grids) == pictures
    assert any("vision" in name or "visual" in name for name in moved) == sees
