"""What the course uses of other packages is there, as far as the type checker cannot know it.

A package that moves on should be reported in one sentence, and not in the middle of a training run.
Most of that is left to basedpyright: names that are imported, arguments of calls, attributes, and
methods that are overridden (`reportImplicitOverride` asks for @override, which is an error where
the base class has no such method). `test_the_checker_finds_nothing_in_the_course` is the last part
of `make lint`, and `test_made_up_drift_is_reported_by_the_checker` shows what it would find.

What it misses is looked for here: keys and other names that are strings, arguments that a signature
only collects in ``**kwargs``, attributes of vLLM's engine, and vLLM's environment variables.
Private parts of Playwright and BrowserGym are used on every page: the tests in tests/browser fail
where one is gone.
"""

import functools
import importlib
import importlib.metadata
import inspect
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from patience import LONG_PATIENCE

import helpers.browser.models  # noqa: F401  (OpenEnv takes a tenth of the time where this is first)
from helpers.episodes.ledger import Ledger
from helpers.policy.vllm_engine import engine_settings, precision_settings
from helpers.settings.machine import vllm_problem
from helpers.settings.paths import ROOT

# What is installed


def find(path: str):
    """The module, class or function with this dotted path. AttributeError or ImportError where
    there is none."""
    parent, _, name = path.rpartition(".")
    if not parent:
        return importlib.import_module(path)
    owner = find(parent)
    if inspect.ismodule(owner) and not hasattr(owner, name):
        return importlib.import_module(path)
    return getattr(owner, name)


def package_of(path: str) -> str:
    """ "trl 1.16.0" for a path in TRL, to say who has changed."""
    top = path.partition(".")[0]
    names = importlib.metadata.packages_distributions().get(top, [top])
    return ", ".join(f"{name} {importlib.metadata.version(name)}" for name in names)


def quotes(code: str, word: str) -> bool:
    """Whether a word stands in code as a string."""
    return re.search(rf"[\"']{re.escape(word)}[\"']", code) is not None


@functools.cache
def source_of_module(path: str) -> str:
    """The source of a module."""
    return Path(find(path).__file__).read_text(encoding="utf-8")


@functools.cache
def our_code(folder: str) -> str:
    """All Python of one of our folders."""
    paths = sorted((ROOT / folder).rglob("*.py"))
    return "\n".join(path.read_text(encoding="utf-8") for path in paths)


def takes(path: str, keyword: str) -> bool:
    """Whether a function takes an argument of this name, or takes it out of its ``**kwargs``."""
    function = find(path)
    if keyword in inspect.signature(function).parameters:
        return True
    return quotes(inspect.getsource(function), keyword)


# Names that are strings: (module that writes or reads them, the names, our folder that uses them)
STRINGS = [
    ("trl.trainer.grpo_trainer", tuple(Ledger().columns()), "helpers/episodes"),
    (
        "trl.trainer.grpo_trainer",
        (
            "advantages",
            "completion_mask",
            "pixel_values",
            "sampling_per_token_logps",
            "tool_mask",
        ),
        "helpers/learning",
    ),
    (
        "trl.trainer.grpo_trainer",
        (
            "reward",
            "reward_std",
            "frac_reward_zero_std",
            "entropy",
            "step_time",
            "completions/mean_length",
            "sampling/sampling_logp_difference/mean",
        ),
        "helpers/learning",
    ),
    ("transformers.trainer", ("loss", "grad_norm", "learning_rate"), "helpers/learning"),
    ("transformers.tokenization_utils_base", ("input_ids",), "helpers/policy"),
    (
        "browsergym.miniwob.base",
        ("RAW_REWARD_GLOBAL", "DONE_GLOBAL", "REWARD_REASON", "error"),
        "helpers/browser",
    ),
    ("browsergym.core.observation", ("browsergym_id", "bbox", "clickable"), "helpers/browser"),
]

# Arguments by name that no checker sees, because something passes them on: (who takes them in the
# end, the names, our folder that gives them)
KEYWORDS = [
    (  # a model is called through torch.nn.Module.__call__, and ignores what it does not know
        "transformers.LlamaForCausalLM.forward",
        (
            "input_ids",
            "attention_mask",
            "position_ids",
            "past_key_values",
            "use_cache",
            "logits_to_keep",
        ),
        "helpers",
    ),
    (  # BrowserGRPOTrainer hands on what it is made with
        "trl.GRPOTrainer.__init__",
        (
            "model",
            "processing_class",
            "args",
            "train_dataset",
            "reward_funcs",
            "rollout_func",
            "environment_factory",
            "callbacks",
        ),
        "helpers/learning",
    ),
    ("transformers.PreTrainedModel.from_pretrained", ("dtype", "gguf_file"), "helpers/policy"),
    ("transformers.AutoTokenizer.from_pretrained", ("gguf_file",), "helpers/policy"),
]
VLLM_KEYWORDS = (
    "model",
    "dtype",
    "max_model_len",
    "gpu_memory_utilization",
    "max_num_seqs",
    "max_num_batched_tokens",
    "logprobs_mode",
)
# The way from vLLM's engine to the weights that `BrowserGRPOTrainer` reloads.
VLLM_ATTRIBUTES = [
    ("vllm.LLM", "llm_engine"),
    ("vllm.v1.engine.llm_engine.LLMEngine", "model_executor"),
    ("vllm.v1.executor.uniproc_executor.UniProcExecutor", "driver_worker"),
    ("vllm.v1.worker.cpu_worker.CPUWorker", "model_runner"),
]

needs_vllm = pytest.mark.skipif(bool(vllm_problem()), reason=vllm_problem())


def missing_strings(module: str, names: tuple[str, ...]) -> list[str]:
    """The names that do not stand in the module, a sentence each."""
    code = source_of_module(module)
    gone = [name for name in names if not quotes(code, name)]
    return [f"{package_of(module)}: {module} no longer names {name!r}." for name in gone]


def missing_keywords(path: str, names: tuple[str, ...]) -> list[str]:
    """The arguments that a function does not take, a sentence each."""
    gone = [name for name in names if not takes(path, name)]
    return [f"{package_of(path)}: {path} takes no argument {name!r}." for name in gone]


def missing_attributes(attributes: list[tuple[str, str]]) -> list[str]:
    """The attributes that a class and its bases do not set on ``self``, a sentence each."""
    found = []
    for path, name in attributes:
        bases = [base for base in find(path).__mro__ if base is not object]
        code = "\n".join(inspect.getsource(base) for base in bases)
        if not re.search(rf"\bself\.{name}\b", code):
            found.append(f"{package_of(path)}: {path} has no {name}.")
    return found


@pytest.mark.parametrize("module, names, folder", STRINGS)
def test_names_that_are_strings_are_written_and_read(module, names, folder):
    assert missing_strings(module, names) == []
    code = our_code(folder)
    own = set(Ledger().columns())
    assert [name for name in names if name not in own and not quotes(code, name)] == []


@pytest.mark.parametrize("path, names, folder", KEYWORDS)
def test_arguments_that_are_passed_on_are_taken_and_given(path, names, folder):
    assert missing_keywords(path, names) == []
    code = our_code(folder)
    assert [name for name in names if not re.search(rf"\b{name}=", code)] == []


@needs_vllm
def test_vllm_takes_our_settings(monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)  # on a CPU there are more of them
    settings = engine_settings() | precision_settings("bfloat16")
    assert len(settings) > 3
    assert missing_keywords("vllm.EngineArgs", (*VLLM_KEYWORDS, *settings)) == []
    config = source_of_module("vllm.config.model")
    assert all(quotes(config, name) for name in settings["hf_overrides"]), package_of("vllm")
    code = our_code("helpers/policy")
    assert [name for name in VLLM_KEYWORDS if not re.search(rf"\b{name}=", code)] == []


@needs_vllm
def test_vllm_reads_our_environment_variables():
    ours = set(re.findall(r'"(VLLM_[A-Z_]+)"', our_code("helpers")))
    assert len(ours) > 2
    known = find("vllm.envs.environment_variables").keys()
    assert sorted(ours - known) == [], package_of("vllm")


@needs_vllm
def test_vllms_weights_can_be_reloaded():
    assert missing_attributes(VLLM_ATTRIBUTES) == []
    runner = "vllm.v1.worker.cpu_model_runner.CPUModelRunner"
    assert missing_keywords(f"{runner}.reload_weights", ("weights_iterator",)) == []
    assert ".".join(name for _, name in VLLM_ATTRIBUTES) in our_code("helpers/learning")
    assert "reload_weights(weights_iterator=" in our_code("helpers/policy")


def test_browsergyms_marking_script_is_the_one_that_the_page_script_changes():
    from helpers.browser.private import page_script

    assert "parent_bid" in page_script()


def test_keys_that_are_not_there_are_reported_in_a_sentence():
    [sentence] = missing_strings("trl.trainer.grpo_trainer", ("advantages", "edges"))
    assert re.fullmatch(
        r"trl 1\.[\d.]+: trl\.trainer\.grpo_trainer no longer .*'edges'\.", sentence
    )
    [sentence] = missing_keywords("transformers.LlamaForCausalLM.forward", ("logits_kept",))
    assert re.fullmatch(r"transformers 5\.[\d.]+: .*forward takes no argument .*\.", sentence)
    [sentence] = missing_attributes([("trl.GRPOTrainer", "loss_kind"), ("trl.GRPOTrainer", "args")])
    assert re.fullmatch(r"trl 1\.[\d.]+: trl\.GRPOTrainer has no loss_kind\.", sentence)


# What is left to the type checker: drift that was made up, and the line in which it says so

CODE = """
import transformers
from transformers import LlamaForCausalLM, PreTrainedTokenizerBase
from trl import GRPOConfig, GRPOTrainer
from trl.generation import vllm_generation
from trl.trainer.utils import selective_log_softmax_and_entropy
from typing_extensions import override


class Trainer(GRPOTrainer):
    def seen(self):
        return self.loss_type

    @override
    def _compute_loss(self, model, inputs):
        return super()._compute_loss(model, inputs)


class Log(transformers.TrainerCallback):
    @override
    def on_log(self, args, state, control, logs=None, **kwargs):
        return state.global_step


def train(model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerBase, rows):
    config = GRPOConfig(output_dir="x", top_k=0)
    trainer = Trainer(model=model, args=config, train_dataset=rows, reward_funcs=[])
    trainer.add_callback(Log())
    trainer.vllm_generation.sync_weights()
    print(vllm_generation.is_vllm_available)
    selective_log_softmax_and_entropy(rows, rows)
    out = model.forward(input_ids=rows, logits_to_keep=1)
    assert out.past_key_values is not None
    out.past_key_values.reorder_cache(rows)
    return trainer.train(resume_from_checkpoint=None)
"""
DRIFT = [  # (what the code says, what it says as if the package had changed, the checker's words)
    ("GRPOConfig, GRPO", "GRPOConfig, SPQR, GRPO", '"SPQR" is unknown import symbol'),
    ("trl.generation import", "trl.generator import", 'Import "trl.generator" could not be'),
    ("top_k=0", "top_q=0", 'No parameter named "top_q"'),
    ("train_dataset=rows", "data=rows", 'No parameter named "data"'),
    ("(rows, rows)", "(rows)", 'Argument missing for parameter "index"'),
    ("(rows, rows)", "(rows, rows, 1, 2, 3, 4)", "Expected 5 positional arguments"),
    ("_compute_loss(self", "_sum_loss(self", 'Method "_sum_loss" is marked as override, but no'),
    ("on_log", "on_logging", 'Method "on_logging" is marked as override, but no base method'),
    ("(self, model, inputs)", "(self, model)", '"_compute_loss" overrides class "GRPOTrainer" in'),
    ("(self, model, inputs)", "(self, inputs, model)", '"_compute_loss" overrides class "GRPOT'),
    ("(self, model, inputs)", "(self, model, inputs, by)", '"_compute_loss" overrides class "GRP'),
    ("self.loss_type", "self.loss_kind", 'Cannot access attribute "loss_kind" for class'),
    ("sync_weights", "copy_weights", 'Cannot access attribute "copy_weights" for class "VLLMG'),
    ("vllm_generation.is_", "vllm_generation.was_", 'is not a known attribute of module ".vllm_g'),
    ("logits_to_keep", "logits_kept", 'No parameter named "logits_kept"'),
    ("out.past_key_values.r", "out.past_values.r", 'Cannot access attribute "past_values" for'),
    ("reorder_cache", "sort_cache", 'Cannot access attribute "sort_cache" for class "Cache"'),
    ("resume_from_checkpoint", "resume", 'No parameter named "resume"'),
    ("    @override\n    def on_log", "    def on_log", '"on_log" is not marked as override'),
]


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """{file: what the checker says of it}, of the course's code, of the code above, and of each way
    in which that was changed. One run for all: it takes a minute to read what the packages have.
    """
    folder = tmp_path_factory.mktemp("drift")
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["basedpyright"]
    course = [ROOT / name for name in settings["include"]]
    settings["include"] = [".", *map(str, course)]
    settings |= {"venvPath": str(ROOT), "extraPaths": [str(ROOT)]}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    (folder / "as_it_is.py").write_text(CODE)
    for number, (old, new, _) in enumerate(DRIFT):
        assert old in CODE
        (folder / f"drift_{number}.py").write_text(CODE.replace(old, new))
    command = [sys.executable, "-m", "basedpyright", "--outputjson", "--project", str(folder)]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=LONG_PATIENCE
    )
    answer = json.loads(done.stdout)
    files = [file for part in (*course, folder) for file in part.rglob("*.py")]
    assert answer["summary"]["filesAnalyzed"] == len(files)
    found: dict[str, list[str]] = {}
    for problem in answer["generalDiagnostics"]:
        if problem["severity"] == "error":
            file = Path(problem["file"])
            name = file.stem if file.is_relative_to(folder) else str(file.relative_to(ROOT))
            found.setdefault(name, []).append(problem["message"])
    return found


@pytest.mark.slow
@pytest.mark.skipif(
    os.environ.get("COURSE_UNPINNED") == "1", reason="the newest packages may bring other types"
)
def test_the_checker_finds_nothing_in_the_course(said):
    assert {name: problems for name, problems in said.items() if name.endswith(".py")} == {}


@pytest.mark.slow
def test_code_that_fits_is_left_in_peace_by_the_checker(said):
    assert "as_it_is" not in said


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(DRIFT)), ids=[new for _, new, _ in DRIFT])
def test_made_up_drift_is_reported_by_the_checker(said, number):
    messages = said.get(f"drift_{number}", [])
    assert any(DRIFT[number][2] in message for message in messages), messages
