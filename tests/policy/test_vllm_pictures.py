"""vLLM answers a policy with eyes in training: what it samples is what the trainer recomputes."""

import json

import pytest
from in_python import run_script

from helpers.learning.eyes.practice import practice_profile
from helpers.learning.recorder import Recorder
from helpers.learning.run import start_trainer
from helpers.policy.eyes import policy_with_new_eyes
from helpers.settings.errors import ProfileError
from helpers.settings.machine import vllm_problem
from helpers.settings.profiles import get_profile

# The adapter is changed by hand before each update, so that the engine has to be given new weights
# whatever the episodes earn.
SCRIPT = """
import json, sys
from pathlib import Path
import torch
from transformers import TrainerCallback
from helpers.learning.eyes.practice import practice_profile
from helpers.learning.run import open_browsers
from helpers.learning.tools_trainer import build_tools_trainer
from helpers.policy.eyes import policy_with_eyes
from helpers.settings.profiles import get_profile

class Changes(TrainerCallback):
    def on_step_begin(self, args, state, control, model, **_):
        generator = torch.Generator().manual_seed(state.global_step)
        with torch.no_grad():
            for name, weight in model.named_parameters():
                if "lora_B" in name:
                    weight.add_(0.003 * torch.randn(weight.shape, generator=generator))

folder = Path(sys.argv[1])
profile = practice_profile(
    get_profile(), generator="vllm", groups=2, group_size=2, updates=2, lora_rank=2, clients=4
)
model, processor = policy_with_eyes()
with open_browsers(profile) as clients:
    trainer = build_tools_trainer(
        profile, model, processor, clients, folder, "picture", lora=True, progress=False
    )
    trainer.add_callback(Changes())
    trainer.train()
trainer.save_model(str(folder / "adapter"))
(folder / "found.json").write_text(json.dumps(trainer.recorder.rows))
"""


@pytest.mark.skipif(bool(vllm_problem()), reason="vLLM is not installed here")
def test_sampled_and_recomputed_logprobs_agree_in_every_update(tmp_path):
    run_script(SCRIPT, tmp_path)
    rows = json.loads((tmp_path / "found.json").read_text())
    assert len(rows) == 2
    assert all(row["logprob_gap/max"] < 1e-3 for row in rows)
    # What is saved does not name the folder that the engine was started with.
    saved = json.loads((tmp_path / "adapter" / "adapter_config.json").read_text())
    assert "tmp" not in saved["base_model_name_or_path"]


def test_a_server_is_refused_in_one_sentence(tmp_path):
    profile = practice_profile(get_profile(), generator="vllm", vllm_server="http://127.0.0.1:8000")
    model, processor = policy_with_new_eyes()
    with pytest.raises(ProfileError, match="unset it, and vLLM runs beside the trainer"):
        start_trainer(
            lambda **_: None,
            profile,
            Recorder(tmp_path, profile, progress=False),
            model=model,
            processing_class=processor,
        )
