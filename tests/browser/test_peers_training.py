"""One update of TRL's trainer on a server of ours, through an environment written as that of TRL's
text example: it knows an address and upstream's client, and nothing of this course."""

import json

import pytest
from datasets import Dataset
from peer_client import BrowserGymEnv, act
from tiny_models import tiny_llama
from transformers import AutoTokenizer
from trl import GRPOConfig, GRPOTrainer
from trl.chat_template_utils import qwen3_chat_template

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
        return self._shown(result.observation)

    def _shown(self, seen):
        error = f"Error: {seen.error}\n" if seen.last_action_error else ""
        return f"Goal: {seen.goal}\n{error}Page:\n{seen.axtree_txt}"


@pytest.fixture
def scripted(monkeypatch):
    """What the policy writes: keys that do not exist, then a click; every other episode misses the
    button. A model of random weights would call no tool. Returns all prompts of the group's first
    episode, as text."""
    prompts = []

    def answer(trainer, prompt_ids, *_, **__):
        tokenizer = trainer.processing_class
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


def small_reader(policy):
    tokenizer = AutoTokenizer.from_pretrained(policy.path)
    tokenizer.chat_template = qwen3_chat_template
    return tiny_llama(tokenizer), tokenizer


def reward(environments, **_):
    return [environment.reward for environment in environments]


@pytest.mark.slow
def test_one_update_as_trls_examples_make_it(server, policy, scripted, monkeypatch, tmp_path):
    monkeypatch.setattr(TextEnvironment, "address", server.url_with_token)  # the one changed line
    model, tokenizer = small_reader(policy)
    trainer = GRPOTrainer(
        model=model,
        processing_class=tokenizer,
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
        environment_factory=TextEnvironment,
    )
    before = {name: weight.clone() for name, weight in model.named_parameters()}
    trainer.train()
    assert len(scripted) == 3
    assert "Goal: Click the button." in scripted[0]
    assert "there is no action 'send_keys'; use one of: click, fill" in scripted[1]
    [logged] = [row for row in trainer.state.log_history if "reward" in row]
    assert (logged["reward"], logged["tools/failure_frequency"]) == (0.5, 0.0)
    assert any((weight != before[name]).any() for name, weight in model.named_parameters())
