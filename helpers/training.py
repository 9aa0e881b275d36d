"""GRPO with TRL on browser episodes: the trainer, its metrics, checkpoints and resume. ``scripts/train.py`` is a whole run."""

import contextlib
import csv
import functools
import itertools
import json
import os
import platform
import random
import resource
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from transformers import PrinterCallback, TrainerCallback
from trl import GRPOConfig, GRPOTrainer
from trl.trainer.utils import selective_log_softmax_and_entropy

from helpers.actions import KINDS
from helpers.episodes import Episode, write_episodes
from helpers.evaluation import Evaluation, difference
from helpers.generation import common_prefix, engine_settings, prepare_vllm
from helpers.policies import Policy, lora_targets, quiet_transformers
from helpers.profiles import Profile, ProfileError
from helpers.rewards import strict_success
from helpers.rollouts import EpisodeSpec, RolloutConfig, make_rollout_func
from helpers.tasks import rollout_config, train_seeds

ATTENTION_ONLY = {"llama", "qwen2", "qwen3"}
MAX_PACKED = 4_096  # tokens


def _pack_tree(groups: list[tuple[list[int], list[list[int]]]]) -> tuple[list[int], list[int], list[int], Any]:
    """Lay out groups of (prompt, completions) as one sequence in which nothing that is shared stands twice.

    First comes what all prompts begin with (the trunk), then, group by group, the rest of its prompt (the stem) and one branch
    per completion. A branch starts with its own copy of the prompt's last token, whose successor differs from branch to branch.
    Returns ids, positions, targets (-100 where nothing is scored) and the boolean attention mask (L, L): a token sees the
    trunk, its own stem, and what came before it in its own branch, exactly what it sees in a sequence of its own.
    """
    prompts = [tuple(prompt) for prompt, _ in groups]
    shared = common_prefix(prompts)
    length = shared + sum(len(prompt) - 1 - shared + sum(map(len, completions)) for prompt, completions in groups)
    ids, positions, targets = list(prompts[0][:shared]), list(range(shared)), [-100] * shared
    sees = torch.zeros(length, length, dtype=torch.bool)
    sees[shared:, :shared] = True

    def add(tokens: list[int], wanted: list[int], first: int) -> slice:
        """Append a causal piece at position ``first``; returns where it stands."""
        here = slice(len(ids), len(ids) + len(tokens))
        ids.extend(tokens), targets.extend(wanted), positions.extend(range(first, first + len(tokens)))
        sees[here, here] = torch.ones(len(tokens), len(tokens), dtype=torch.bool).tril()
        return here

    sees[:shared, :shared] = torch.ones(shared, shared, dtype=torch.bool).tril()
    for prompt, completions in groups:
        stem = add(prompt[shared:-1], [-100] * (len(prompt) - 1 - shared), shared)
        for completion in completions:
            branch = add(prompt[-1:] + completion[:-1], completion, len(prompt) - 1)
            sees[branch, stem] = True
    return ids, positions, targets, sees


class BrowserGRPOTrainer(GRPOTrainer):
    """`GRPOTrainer` with four additions, none of which changes the loss:

    - what prompts share goes through the model once, not once per completion (attention-only text models);
    - a group in which all ended alike has no advantage and so no gradient: the loss leaves it out of its passes;
    - ``sync_weights`` works with vLLM's CPU build;
    - the gap between sampled and recomputed logprobs is a metric (``logprob_gap/max``), with either generator.
    """

    share_prompts = True

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._scored = None
        if self.use_vllm and self.accelerator.device.type == "cpu":
            self.vllm_generation.sync_weights = self._sync_weights_cpu

    def _sync_weights_cpu(self) -> None:
        """The CPU build repacks its weights when it loads them, so they are loaded again, not copied into place."""
        llm = self.vllm_generation.llm
        runner = llm.llm_engine.model_executor.driver_worker.model_runner
        weights = ((name, tensor.clone()) for name, tensor in self.vllm_generation._iter_named_params())
        runner.reload_weights(weights_iterator=weights)
        if self.model.config.tie_word_embeddings:
            # The output head has a packed copy of the embeddings, which reloading leaves as it was before training: the
            # logprob gap then grows with every update.
            model = runner.get_model()
            model.lm_head.weight = model.model.embed_tokens.weight
            model.lm_head.quant_method.process_weights_after_loading(model.lm_head)
        llm.reset_prefix_cache()

    def _get_per_token_logps_and_entropies(self, model, input_ids, attention_mask, logits_to_keep, batch_size=None,
                                           compute_entropy=False, compute_aux_loss=False, **images):
        family = self.accelerator.unwrap_model(model).config.model_type
        plain = all(value is None for value in images.values()) and not compute_aux_loss
        if self.share_prompts and plain and family in ATTENTION_ONLY:
            logps, entropies = self._shared_prompt_logps(model, input_ids, attention_mask, logits_to_keep)
            result = (logps, entropies if compute_entropy else None, None)
        else:
            result = super()._get_per_token_logps_and_entropies(
                model, input_ids, attention_mask, logits_to_keep, batch_size=batch_size, compute_entropy=compute_entropy,
                compute_aux_loss=compute_aux_loss, **images)
        self._scored = result[0].detach()
        return result

    def _shared_prompt_logps(self, model, input_ids, attention_mask, keep):
        """Logprobs and entropies (batch, keep) of the completions; every shared token is computed once (`_pack_tree`), and so is
        a completion that a group has several times: on short answers that is the rule."""
        rows = [(tuple(ids[:-keep][m[:-keep].bool()].tolist()), tuple(ids[-keep:][m[-keep:].bool()].tolist()))
                for ids, m in zip(input_ids, attention_mask, strict=True)]
        groups: dict[tuple[int, ...], dict[tuple[int, ...], list[int]]] = {}
        for i, (prompt, completion) in enumerate(rows):
            groups.setdefault(prompt, {}).setdefault(completion, []).append(i)
        logps, entropies = [None] * len(rows), [None] * len(rows)
        chunk: list[tuple[int, ...]] = []
        for n, prompt in enumerate(groups, start=1):  # the mask grows with the square of the length, so it is bounded
            chunk.append(prompt)
            tokens = sum(len(p) + sum(map(len, groups[p])) for p in chunk)
            if n < len(groups) and tokens < MAX_PACKED:
                continue
            ids, positions, targets, sees = _pack_tree([(list(p), list(map(list, groups[p]))) for p in chunk])
            device = input_ids.device
            where = [i for i, target in enumerate(targets) if target != -100]
            with self.accelerator.autocast():
                out = model(input_ids=torch.tensor([ids], device=device), attention_mask=sees[None, None].to(device),
                            position_ids=torch.tensor([positions], device=device), use_cache=False,
                            logits_to_keep=torch.tensor(where, device=device))
            wanted = torch.tensor([targets[i] for i in where], device=device)
            scored, entropy = selective_log_softmax_and_entropy(out.logits[0].float(), wanted, temperature=self.temperature)
            branches = [(completion, same) for p in chunk for completion, same in groups[p].items()]
            sizes = [len(completion) for completion, _ in branches]
            for (completion, same), lp, h in zip(branches, scored.split(sizes), entropy.split(sizes), strict=True):
                for i in same:
                    logps[i] = torch.nn.functional.pad(lp, (0, keep - len(completion)))
                    entropies[i] = torch.nn.functional.pad(h, (0, keep - len(completion)))
            chunk = []
        return torch.stack(logps), torch.stack(entropies)

    def _save_rng_state(self, output_dir):
        super()._save_rng_state(output_dir)
        os.sync()  # before trainer_state.json, which says that a checkpoint is whole, and before the last one is deleted

    def _compute_loss(self, model, inputs):
        if self.loss_type == "dapo" and not self.beta and not self.args.entropy_coef and "pixel_values" not in inputs:
            # This loss divides by the tokens of the whole batch (num_items_in_batch), so what is 0 can be left out. One row
            # stays where all are 0: the optimiser wants a graph.
            taught = inputs["advantages"] != 0
            taught[0] |= not taught.any()
            inputs = {name: value[taught] if torch.is_tensor(value) and value.shape[:1] == taught.shape else value
                      for name, value in inputs.items()}
        loss = super()._compute_loss(model, inputs)
        if (sampled := inputs.get("sampling_per_token_logps")) is not None:
            mask = inputs["completion_mask"] * inputs.get("tool_mask", 1)
            gap = (self._scored - sampled).abs() * mask
            self._metrics["train"]["logprob_gap/max"].append(self.accelerator.gather(gap.max()).max().item())
            if not (self.use_vllm and self.vllm_importance_sampling_correction):  # else the trainer has logged it
                mean = self.accelerator.gather(gap.sum() / mask.sum().clamp(min=1)).mean().item()
                self._metrics["train"]["sampling/sampling_logp_difference/mean"].append(mean)
        return loss


METRICS = ("update", "reward", "reward_std", "frac_reward_zero_std", "valid", "infrastructure", "entropy", "loss", "grad_norm",
           "learning_rate", "logprob_gap/max", "sampling/sampling_logp_difference/mean", "completions/mean_length",
           "step_time", *KINDS)


class Recorder(TrainerCallback):
    """Writes ``metrics.csv`` (one row per update) and ``episodes.jsonl`` (every training episode), and shows one line of
    progress. A resumed run drops the rows after its checkpoint and goes on."""

    def __init__(self, folder: Path, updates: int, show: Callable[[str], None] | None = None):
        self.folder, self.updates, self.show = folder, updates, show or progress_line()
        self.rows: list[dict[str, Any]] = []
        self.episodes: list[Episode] = []
        self.lost = self.played = 0
        self.started = self.first_update = None

    def on_batch(self, episodes: list[Episode]) -> None:
        """Called by the rollout function with the episodes of one update."""
        self.episodes = episodes
        self.played += len(episodes)
        self.lost += sum(e.reward is None for e in episodes)

    def on_train_begin(self, args, state, control, **kwargs) -> None:
        self.started, self.first_update = time.monotonic(), state.global_step
        self.folder.mkdir(parents=True, exist_ok=True)
        self.rows = [row for row in read_metrics(self.folder) if row["update"] <= state.global_step]
        done = self.folder / "episodes.jsonl"
        lines = done.read_text().splitlines(keepends=True) if done.exists() else []
        done.write_text("".join(line for line in lines  # the last one may have been cut off
                                if line.endswith("\n") and json.loads(line)["update"] <= state.global_step))

    def on_log(self, args, state, control, logs=None, **kwargs) -> None:
        if not logs or "reward" not in logs:
            return
        kinds = [kind for e in self.episodes for kind in e.kinds]
        row = {key: float(logs[key]) for key in METRICS if key in logs}
        row |= {kind: kinds.count(kind) for kind in KINDS}
        row |= {"update": state.global_step, "valid": kinds.count("ok") / max(1, len(kinds)),
                "infrastructure": sum(e.reward is None for e in self.episodes)}
        self.rows.append(row)
        if not state.is_world_process_zero:  # of several processes, each with its own part of the episodes, one keeps the record
            return
        write_metrics(self.folder, self.rows)
        with (self.folder / "episodes.jsonl").open("a") as file:
            for episode in self.episodes:
                file.write(json.dumps({"update": state.global_step, **episode.to_json()}, ensure_ascii=False) + "\n")
        recent = [r["reward"] for r in self.rows[-5:]]
        each = (time.monotonic() - self.started) / max(1, state.global_step - self.first_update)
        self.show(f"update {state.global_step} of {self.updates} · reward of the last {len(recent)}: "
                  f"{sum(recent) / len(recent):.2f} · {each:.1f} s each · "
                  f"{each * (self.updates - state.global_step) / 60:.1f} min left")

    def on_train_end(self, args, state, control, **kwargs) -> None:
        if self.lost > 0.01 * max(1, self.played):
            print(f"This run is invalid: {self.lost} of {self.played} episodes were lost to the infrastructure (more than 1 %).")


def progress_line() -> Callable[[str], None]:
    """A function that shows a line in place of its last one, in a notebook or in a terminal."""
    with contextlib.suppress(ImportError):
        from IPython import get_ipython
        from IPython.display import display

        if getattr(get_ipython(), "kernel", None):
            handle = display({"text/plain": ""}, raw=True, display_id=True)
            return lambda text: handle.update({"text/plain": text}, raw=True)
    return lambda text: print(f"\r{text:<110}", end="", flush=True)


def write_metrics(folder: Path, rows: list[dict[str, Any]]) -> None:
    """Write ``metrics.csv``, in one move so that it is never half there; a column without a value stays empty."""
    with (folder / "metrics.tmp").open("w", newline="") as file:
        writer = csv.DictWriter(file, METRICS, restval="", extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows({k: round(v, 6) if isinstance(v, float) else v for k, v in row.items()} for row in rows)
    (folder / "metrics.tmp").replace(folder / "metrics.csv")


def read_metrics(folder: Path | str) -> list[dict[str, float]]:
    """The rows of ``metrics.csv`` as numbers, [] where there is none."""
    path = Path(folder) / "metrics.csv"
    if not path.exists():
        return []
    with path.open() as file:
        return [{k: float(v) for k, v in row.items() if v != ""} for row in csv.DictReader(file)]


def training_specs(profile: Profile, n: int) -> list[EpisodeSpec]:
    """``n`` training episodes of the profile's tasks (comma-separated, drawn in turn), in an order that ``seed`` fixes; a list
    of pages that is shorter than the run is gone through again, in another order."""
    draw = random.Random(profile.seed)

    def pages(task: str) -> Iterator[EpisodeSpec]:
        seeds = train_seeds(task, profile.pages)
        while True:
            yield from (EpisodeSpec(task, seed) for seed in draw.sample(seeds, min(len(seeds), n)))

    streams = itertools.cycle([pages(task) for task in profile.task.split(",")])
    return [next(stream) for stream in itertools.islice(streams, n)]


def episode_config(profile: Profile) -> RolloutConfig:
    """How the profile's episodes are played in training."""
    named = {name: value for name in ("max_turns", "max_tokens") if (value := getattr(profile, name))}
    return rollout_config(profile.task, examples=profile.examples == "task", temperature=profile.temperature,
                          top_k=profile.top_k, **named, **({"turns": {}} if profile.max_turns else {}))


def grpo_config(profile: Profile, folder: Path | str, lora: bool = False) -> GRPOConfig:
    """The trainer's configuration: plain GRPO as TRL has it, sampled at temperature 1 without top-k or top-p.

    ``beta`` 0 means no KL term and so no reference model; gradient checkpointing is off because these models fit. In fp32 the
    sampled and the recomputed logprobs agree to 1e-4, so the correction for their ratio would multiply by 1 and cost a forward
    pass; it is on in bf16, where they differ.
    """
    cpu, processes = profile.device == "cpu", int(os.environ.get("WORLD_SIZE", 1))
    parts = profile.accumulate * processes
    if profile.groups % processes or profile.batch % parts:
        raise ProfileError(f"{profile.groups} groups of {profile.group_size} cannot be shared by {processes} processes in "
                           f"{profile.accumulate} parts: choose COURSE_GROUPS and COURSE_ACCUMULATE so that they can.")
    return GRPOConfig(
        output_dir=str(folder), seed=profile.seed, max_steps=profile.updates, num_generations=profile.group_size,
        per_device_train_batch_size=profile.batch // parts, gradient_accumulation_steps=profile.accumulate,
        learning_rate=profile.lora_learning_rate if lora else profile.learning_rate,
        lr_scheduler_type="constant_with_warmup", warmup_steps=profile.warmup, temperature=profile.temperature, beta=0.0,
        top_k=profile.top_k, top_p=1.0,
        entropy_coef=profile.entropy, loss_type="dapo", scale_rewards="group", max_completion_length=1024,
        shuffle_dataset=False, activation_checkpointing=False,
        use_vllm=profile.generator == "vllm", vllm_mode="server" if profile.vllm_server else "colocate",
        vllm_server_base_url=profile.vllm_server or None, vllm_max_model_length=1536,
        vllm_importance_sampling_correction=profile.dtype != "float32", vllm_gpu_memory_utilization=profile.vllm_memory,
        use_cpu=cpu, bf16=profile.dtype == "bfloat16", fp16=False, dataloader_pin_memory=not cpu,
        logging_steps=1, save_strategy="steps", save_steps=profile.save_every, save_total_limit=1, disable_tqdm=True,
        report_to=[t for t in os.environ.get("COURSE_REPORT_TO", "").split(",") if t])


def lora_config(profile: Profile, family: str) -> Any:
    """LoRA on every linear module inside the layers; alpha = 2 r, no dropout (it would make sampled and trained policy
    differ)."""
    from peft import LoraConfig

    return LoraConfig(r=profile.lora_rank, lora_alpha=2 * profile.lora_rank, lora_dropout=0.0, task_type="CAUSAL_LM",
                      target_modules=list(lora_targets(family)))


@contextlib.contextmanager
def vllm_in_precision(dtype: str) -> Iterator[None]:
    """Start the trainer's engine in the policy's own precision: TRL names none, and vLLM's "auto" makes bf16 of fp32, which
    would move the sampled logprobs by 0.1 and more."""
    import trl.generation.vllm_generation as module

    original = module.LLM
    module.LLM = functools.partial(original, dtype=dtype, **engine_settings())
    try:
        yield
    finally:
        module.LLM = original


def build_trainer(profile: Profile, policy: Policy, clients: Sequence[Any], folder: Path | str, lora: bool = False,
                  reward_funcs: Sequence[Callable] = (strict_success,), config: RolloutConfig | None = None,
                  show: Callable[[str], None] | None = None) -> BrowserGRPOTrainer:
    """Put policy, browsers and reward together; ``trainer.train()`` then runs, ``resume_from_checkpoint=True`` resumes.

    ``clients``: open browser sessions, best as many as an update has episodes. ``folder``: metrics, episodes, checkpoints.
    """
    folder = Path(folder)
    quiet_transformers()
    prepare_vllm()
    recorder = Recorder(folder, profile.updates, show)
    config = config or episode_config(profile)
    rows = [{"prompt": str(spec)} for spec in training_specs(profile, profile.updates * profile.groups)]
    with vllm_in_precision(profile.dtype) if profile.generator == "vllm" else contextlib.nullcontext():
        trainer = BrowserGRPOTrainer(
            model=policy.model, processing_class=policy.tokenizer, args=grpo_config(profile, folder, lora),
            train_dataset=Dataset.from_list(rows), reward_funcs=list(reward_funcs),
            rollout_func=make_rollout_func(clients, policy.tokenizer, config, recorder.on_batch),
            peft_config=lora_config(profile, policy.family) if lora else None, callbacks=[recorder])
    trainer.remove_callback(PrinterCallback)
    trainer.recorder = recorder
    return trainer


def last_checkpoint(folder: Path | str) -> str | None:
    """The latest whole checkpoint of a run, for ``trainer.train(resume_from_checkpoint=...)``; None where there is none. What an
    interrupted save has left behind is deleted."""
    whole = None
    for path in sorted(Path(folder).glob("checkpoint-*"), key=lambda path: int(path.name.rpartition("-")[2])):
        try:
            json.loads((path / "trainer_state.json").read_text())  # written last
            whole = str(path)
        except (OSError, ValueError):
            shutil.rmtree(path)
    return whole


def sync_policy(trainer: BrowserGRPOTrainer) -> None:
    """Give the trainer's vLLM engine the current weights (after training, before an evaluation); nothing to do without."""
    if trainer.use_vllm:
        trainer.vllm_generation.sync_weights()


def save_result(folder: Path | str, trainer: BrowserGRPOTrainer, profile: Profile, before: Evaluation, after: Evaluation,
                seconds: dict[str, float], lora: bool = False) -> dict[str, Any]:
    """Save the policy (with LoRA: its adapter), the evaluated episodes and ``result.json``; returns that file's content ({} in
    all but the first of several processes)."""
    folder = Path(folder)
    trainer.save_model(str(folder / "policy"))
    if not trainer.is_world_process_zero():
        return {}
    trainer.processing_class.save_pretrained(folder / "policy")
    write_episodes(folder / "before.jsonl", before.episodes)
    write_episodes(folder / "after.jsonl", after.episodes)
    trainable = sum(p.numel() for p in trainer.model.parameters() if p.requires_grad)
    result = {"before": before.summary() if before.episodes else None, "after": after.summary(),
              "difference": difference(before, after) if before.episodes else None, "lora": lora,
              "trainable_parameters": trainable, "peak_memory_gb": peak_memory_gb(), "profile": asdict(profile),
              "seconds": {name: round(value, 1) for name, value in seconds.items()}, **run_facts()}
    (folder / "result.json").write_text(json.dumps(result, indent=1) + "\n")
    return result


def run_facts() -> dict[str, Any]:
    """What a result depends on besides its settings, for its JSON: versions of the packages, and the machine."""
    return {"versions": {name: version(name) for name in ("torch", "transformers", "trl", "peft", "openenv")},
            "machine": f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}"}


def peak_memory_gb() -> float:
    """The most memory this process has used so far: on the GPU where there is one, else RAM (browsers not counted)."""
    if torch.cuda.is_available():
        return round(torch.cuda.max_memory_allocated() / 1e9, 2)
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, 2)  # Linux counts in kB
