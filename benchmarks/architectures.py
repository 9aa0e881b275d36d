"""Seconds and memory of an update, and of its answers, for policies larger than the embedded one.

The policies are built from their published configurations (`benchmarks.published_configs`) with
random weights: how fast they are and what they need is real, their answers and rewards are not, and
nothing here says how well they would learn. An update is one of the course's own trainer: logprobs
of the episodes, loss, backward, step of the optimiser. Its episodes are made up
(`benchmarks.made_up_episodes`); a policy with eyes reads a picture of the page with each. On a GPU
an update has the profile's groups and parts; on a CPU it is smaller, and the output says so. Update
and answers of each policy have a process of their own: memory is never given back within one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from benchmarks.made_up_episodes import batch_of, picture_tokens, pictures_of, prompts_of
from benchmarks.published_configs import ARCHITECTURES, Architecture
from benchmarks.recording import AsJson, Record, record
from helpers.command_line import run
from helpers.output import table
from helpers.settings.machine import peak_memory_gb, run_facts, this_machine
from helpers.settings.paths import ROOT
from helpers.settings.predictions import ANSWER_TOKENS, memory_parts
from helpers.settings.profiles import Profile, get_profile

if TYPE_CHECKING:
    from torch import Tensor

SMALLER = {"groups": 2, "group_size": 4, "accumulate": 1}  # of an update on a CPU
UNTIMED = 1  # updates, and calls of a generator, before the ones that count


def profile_of_update(architecture: Architecture, groups: int, group_size: int) -> Profile:
    """This machine's profile with the episodes of an update; 0: those of the profile on a GPU,
    `SMALLER` ones on a CPU."""
    profile = replace(get_profile(scale="demo"), policy=architecture.known_as or "smollm2-135m")
    if profile.device == "cpu":
        profile = replace(profile, **SMALLER)
    if groups:
        profile = replace(profile, groups=groups, accumulate=1)
    return replace(profile, group_size=group_size) if group_size else profile


# ---- an update ----


def measure_update(architecture: Architecture, profile: Profile, updates: int) -> dict[str, Any]:
    """Seconds and peak memory of an update, in this process.

    Returns one row of the table. ``predicted_gb`` is what `helpers.settings.predictions` says of
    the same update, of a policy that the course knows.
    """
    from benchmarks.same_episodes import train_on
    from helpers.policy.loading import load_policy, quiet_transformers

    quiet_transformers()
    profile = replace(profile, generator="transformers", updates=UNTIMED + updates, warmup=0)
    tokenizer = load_policy("smollm2-135m", weights=False).tokenizer
    model: Any = architecture.build()
    model.to(profile.device)
    batch = batch_of(profile, architecture)
    with tempfile.TemporaryDirectory() as folder:
        counted = train_on(batch, model, tokenizer, profile, folder)[UNTIMED:]
    tokens = batch["prompt_ids"].shape[1] + ANSWER_TOKENS
    return {
        "parameters_m": round(model.num_parameters() / 1e6),
        "tokens": profile.batch * tokens,
        "update_s": round(sum(counted) / len(counted), 2),
        "peak_gb": peak_memory_gb(),
        "predicted_gb": predicted_gb(architecture, profile),
    }


def predicted_gb(architecture: Architecture, profile: Profile) -> float | None:
    """What the course predicts for such an update without vLLM and browsers; None for a policy
    that it does not know."""
    if not architecture.known_as:
        return None
    parts = memory_parts(profile)
    return round(sum(parts.values()) - parts["browsers"] - parts["vllm"], 2)


# ---- the answers ----


def measure_answers(architecture: Architecture, profile: Profile) -> dict[str, Any]:
    """Seconds to answer all prompts of an update, in this process; one row of the table.

    The profile's ``generator`` writes them, for policies with eyes transformers' own ``generate``.
    """
    from benchmarks.same_episodes import wait_for_gpu

    with _answering(architecture, profile) as (answer, generator):
        for seed in range(UNTIMED):
            answer(prompts_of(profile, architecture, seed))
        prompts = prompts_of(profile, architecture, UNTIMED)  # other ones: nothing is in a cache
        wait_for_gpu()
        begin = time.perf_counter()
        answer(prompts)
        wait_for_gpu()
        seconds = time.perf_counter() - begin
    return {"generator": generator, "answers_s": round(seconds, 2)}


@contextmanager
def _answering(architecture: Architecture, profile: Profile) -> Iterator[tuple[Any, str]]:
    """What answers prompts (rows, length), and its name."""
    from helpers.policy.generators import TransformersGenerator
    from helpers.policy.loading import load_policy, quiet_transformers

    quiet_transformers()
    tokenizer = load_policy("smollm2-135m", weights=False).tokenizer
    model: Any = architecture.build()
    if architecture.vision:
        yield _with_pictures(model.to(profile.device).eval(), architecture), "transformers"
        return
    if profile.generator != "vllm":
        generator = TransformersGenerator(model.to(profile.device), tokenizer)
        yield lambda prompts: generator.generate(prompts.tolist(), ANSWER_TOKENS), "transformers"
        return
    from helpers.policy.vllm_engine import start_vllm

    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        del model
        engine = start_vllm(folder, profile.vllm_dtype)
        yield lambda prompts: engine.generate(prompts.tolist(), ANSWER_TOKENS), "vllm"


def _with_pictures(model: Any, architecture: Architecture) -> Any:
    """Answers to prompts with a picture each."""
    import torch

    from benchmarks.same_episodes import on_device

    def answer(prompts: Tensor) -> None:
        ids = prompts.to(model.device)
        inputs = pictures_of(len(ids), architecture) | picture_tokens(ids, architecture)
        with torch.inference_mode():
            model.generate(
                input_ids=ids,
                attention_mask=torch.ones_like(ids),
                **on_device(inputs, model.device),
                max_new_tokens=ANSWER_TOKENS,
                min_new_tokens=ANSWER_TOKENS,
                do_sample=True,
                pad_token_id=0,
            )

    return answer


# ---- all of them, each in a process of its own ----


def measure(names: list[str], groups: int, group_size: int, updates: int) -> dict[str, Any]:
    """Every architecture, as the object that ``--json`` prints."""
    rows: dict[str, dict[str, Any]] = {}
    for name in names:
        rows[name] = {}
        for part in ("update", "answers"):
            rows[name] |= _part_of_row(name, part, groups, group_size, updates)
    profile = profile_of_update(ARCHITECTURES[names[0]], groups, group_size)
    return {
        "policies": rows,
        "weights": "random: speed and memory are real, answers are not",
        "episodes": profile.batch,
        "group_size": profile.group_size,
        "smaller_than_in_the_course": profile.batch < get_profile(scale="demo").batch,
        "dtype": profile.dtype,
        "vllm_dtype": profile.vllm_dtype,
        "updates": updates,
        "device": this_machine()[0],
        **run_facts(),
    }


def _part_of_row(
    name: str, part: str, groups: int, group_size: int, updates: int
) -> dict[str, Any]:
    """A part of a row. Where vLLM does not take a policy on this machine, transformers answers,
    and ``not_by_vllm`` says why."""
    size = (groups, group_size, updates)
    measured = _in_a_process(name, part, *size)
    reason = measured.get("answers_failed", "")
    if not reason.startswith("vLLM did not start"):
        return measured
    again = _in_a_process(name, part, *size, COURSE_GENERATOR="transformers")
    return {**again, "not_by_vllm": reason}


def _in_a_process(
    name: str, part: str, groups: int, group_size: int, updates: int, **settings: str
) -> dict[str, Any]:
    """A part of a row; where it cannot be measured here, the reason. ``settings``: of the
    environment."""
    command = [sys.executable, "-m", "benchmarks.architectures", "--policy", name, "--part", part]
    command += ["--groups", str(groups), "--group-size", str(group_size)]
    command += ["--updates", str(updates)]
    env = {"OMP_WAIT_POLICY": "PASSIVE", **os.environ, **settings}  # the first as make sets it
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
    if done.returncode:
        return {f"{part}_failed": _reason(done.stderr) or f"exit status {done.returncode}"}
    return json.loads(done.stdout.rpartition("RESULT ")[2])


def _reason(stderr: str) -> str:
    """The last that a process said, without what vLLM's build says at the end of every process."""
    said = [line for line in stderr.rstrip().splitlines() if not line.startswith(" - ")]
    return next((line[:300] for line in reversed(said) if "nanobind" not in line), "")


def names_that_fit() -> list[str]:
    """The architectures of which an update can fit into this machine's memory.

    Weights, gradients and Adam's moments are 16 bytes for each parameter; activations come on top.
    """
    import torch

    memory = this_machine()[1]
    fitting = []
    for name, architecture in ARCHITECTURES.items():
        with torch.device("meta"):
            parameters = architecture.build().num_parameters()
        if parameters * 16 / 1e9 < 0.75 * memory:
            fitting.append(name)
    return fitting


def show(result: dict[str, Any]) -> None:
    """Print the table, and what of it is real."""
    size = "fewer than the course's profile has" if result["smaller_than_in_the_course"] else ""
    print(
        f"an update of {result['episodes']} episodes {f'({size}) ' if size else ''}on "
        f"{result['machine']} ({result['device']}), training in {result['dtype']}"
    )
    print("weights are random: speed and memory are real, answers and rewards are not")
    heads = [
        "policy",
        "million",
        "tokens",
        "update s",
        "peak GB",
        "predicted GB",
        "answers s",
        "by",
    ]
    fields = ["parameters_m", "tokens", "update_s", "peak_gb", "predicted_gb", "answers_s"]
    rows = [
        [name, *(str(row.get(column) or "-") for column in [*fields, "generator"])]
        for name, row in result["policies"].items()
    ]
    print(table(heads, rows))
    for name, row in result["policies"].items():
        for part in ("update", "answers"):
            if f"{part}_failed" in row:
                print(f"{name}, {part}: not measured ({row[f'{part}_failed']})")
        if "not_by_vllm" in row:
            print(f"{name}, answers by transformers: {row['not_by_vllm']}")


def main(
    as_json: AsJson = False,
    record_it: Record = False,
    updates: Annotated[int, typer.Option(help="those that are counted")] = 3,
    groups: Annotated[int, typer.Option(help="pages per update; 0: as on this machine")] = 0,
    group_size: Annotated[int, typer.Option(help="episodes per page; 0: as here")] = 0,
    policy: Annotated[str, typer.Option(help=f"only this one: {', '.join(ARCHITECTURES)}")] = "",
    part: Annotated[
        str, typer.Option(help="with --policy, only this in this process: update or answers")
    ] = "",
) -> None:
    """Seconds and memory of an update, and of its answers, for larger policies' architectures.

    \b
    python -m benchmarks.architectures             a table
    python -m benchmarks.architectures --record    written to recordings/architectures/ too
    """
    if policy and policy not in ARCHITECTURES:
        raise typer.BadParameter(f"there is no policy {policy!r}: {', '.join(ARCHITECTURES)}")
    if part not in ("", "update", "answers"):
        raise typer.BadParameter(f"there is no part {part!r}: update, answers")
    if policy and part:
        print("RESULT " + json.dumps(measure_part(policy, part, groups, group_size, updates)))
        return
    result = measure([policy] if policy else names_that_fit(), groups, group_size, updates)
    if record_it:
        sizes = {"updates": updates, "groups": groups, "group-size": group_size}
        options = [f"--{name} {value}" for name, value in sizes.items() if value]
        record("architectures", result, options=" ".join(options))
    if as_json:
        print(json.dumps(result))
    else:
        show(result)


def measure_part(
    policy: str, part: str, groups: int, group_size: int, updates: int
) -> dict[str, Any]:
    """One part of one row, in this process."""
    architecture = ARCHITECTURES[policy]
    profile = profile_of_update(architecture, groups, group_size)
    if part == "answers":
        return measure_answers(architecture, profile)
    return measure_update(architecture, profile, updates)


if __name__ == "__main__":
    sys.exit(run(main))
