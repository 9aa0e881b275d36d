"""Play a standard set of tasks with a policy or an agent: comparable numbers, with intervals."""

import hashlib
import re
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from helpers.browser import start_browser_server
from helpers.command_line import run
from helpers.episodes.how_played import kept_how
from helpers.episodes.tasks import TEST_SEEDS, read_tasks
from helpers.evaluation.baselines import AGENTS
from helpers.evaluation.benchmark import FILE, PART, agent_plays, play_set, policy_plays
from helpers.evaluation.evaluate import OWN_PROMPTS
from helpers.evaluation.outcomes import Outcome, summary
from helpers.evaluation.report import benchmark_report
from helpers.evaluation.scripted import OUT_OF_REACH
from helpers.evaluation.standard_sets import StandardSet, standard_set
from helpers.policy.at_hand import with_policy_at_hand
from helpers.settings.files import RunFileError, read_object, write_json, writing
from helpers.settings.machine import run_facts
from helpers.settings.paths import RECORDINGS, runs_folder
from helpers.settings.profiles import get_profile
from helpers.settings.run_folder import RUN, hold_folder, hold_to_settings, release_folder
from scripts.options import PolicyOption, TemperatureOption

MOST_CLIENTS = {"cpu": 32, "cuda": 64}
PART_SIZE = {"cpu": PART, "cuda": 4 * PART}  # pages; a GPU is sooner done with them
RESULT = "result.json"

SetName = Literal["webgum56", "browsergym125", "browsergym63", "suite"]  # those of `SETS`
AgentName = Literal["random", "first_button", "text_match", "scripted"]


def take_folder(folder: Path, settings: dict[str, Any]) -> None:
    """Keep a folder for this run, new or to be gone on with.

    Raises `RunFileError` where it cannot be written, or holds a run with other settings.
    """
    hold_folder(folder)
    if read_object(folder / RUN) is None and (folder / FILE).exists():
        raise RunFileError(f"{folder / RUN} cannot be read: choose another folder with --output.")
    hold_to_settings(folder, settings)


def weights_of(policy: str) -> str:
    """What tells a policy in a folder from a later one in the same folder: a digest of its weights;
    "" for a name."""
    digest = hashlib.sha256()
    files = sorted(Path(policy).glob("*.safetensors"))
    for path in files:
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:16] if files else ""


def label_of(chosen: str, name: str) -> str:
    """What the folder of a run is called: the set, and who plays. Of a policy's path stands what
    tells it from others: recordings/one-policy/policy is "one-policy"."""
    words = [part for part in Path(name).parts if part not in ("recordings", "runs", "policy")]
    return f"{chosen}-{re.sub(r'[^A-Za-z0-9]+', '-', '-'.join(words or [name])).strip('-')}"


def play_pages(
    pages: StandardSet,
    folder: Path,
    agent: str | None,
    name: str,
    prompts: str | Sequence[str],
    temperature: float,
) -> list[Outcome]:
    """Play what is left to be played, with an agent or with the policy ``name``.

    ``prompts``: the tasks whose common prompt the policy reads, or `OWN_PROMPTS`, or nothing: as
    its folder says.
    """
    profile = get_profile()
    with start_browser_server(workers=profile.workers) as server:
        clients = server.clients(min(MOST_CLIENTS[profile.device], profile.clients))
        if agent:
            players = agent_plays(AGENTS.get(agent, AGENTS["oracle"]), pages, clients)
            return play_set(pages, players, folder)
        players = policy_plays(name, pages, clients, profile, temperature, prompts)
        size = PART_SIZE[profile.device]
        return play_set(pages, players, folder, prompts == OWN_PROMPTS, size)


def result_of(
    chosen: StandardSet, outcomes: list[Outcome], settings: dict[str, Any], command: str
) -> dict[str, Any]:
    """What result.json holds."""
    return {
        "command": command,
        **settings,
        "about": chosen.about,
        "turns": chosen.turns,
        **summary(outcomes),
        "out_of_reach": {task: OUT_OF_REACH[task] for task in chosen.tasks if task in OUT_OF_REACH},
        **run_facts(),
    }


def record(folder: Path, name: str) -> None:
    """Copy the result and its outcomes to recordings/benchmark/``name``."""
    target = RECORDINGS / "benchmark" / name
    with writing(target):
        target.mkdir(parents=True, exist_ok=True)
        for file in (RESULT, FILE):
            shutil.copyfile(folder / file, target / file)
    print(f"recorded in {target}")


SetOption = Annotated[SetName, typer.Option("--set", help="which tasks and pages")]
AgentOption = Annotated[
    AgentName | None,
    typer.Option(help="play without a policy; scripted: helpers.evaluation.scripted"),
]
TaughtOption = Annotated[
    str,
    typer.Option(
        help="the tasks that the policy was trained on, whose common prompt it reads; own: each "
        "task with its own prompt; by default as the policy's folder says, else own"
    ),
]
PagesOption = Annotated[
    int,
    typer.Option(
        min=0, max=len(TEST_SEEDS), help="pages of each task, to try; 0: as the set has them"
    ),
]
RecordOption = Annotated[
    bool, typer.Option("--record", help="copy the result to recordings/benchmark/")
]


def main(
    context: typer.Context,
    chosen: SetOption = "webgum56",
    policy: PolicyOption = None,
    agent: AgentOption = None,
    taught: TaughtOption = "",
    n: PagesOption = 0,
    temperature: TemperatureOption = 0.0,
    output: Annotated[Path | None, typer.Option(help="folder of the run")] = None,
    record_it: RecordOption = False,
) -> None:
    """Play a standard set of tasks; the same command goes on where it was stopped.

    \b
    python -m scripts.benchmark --set webgum56 --policy runs/train/policy
    python -m scripts.benchmark --set browsergym125 --agent random
    """
    if policy and agent:
        raise typer.BadParameter("--policy and --agent cannot be given together")
    name = policy or agent or with_policy_at_hand(get_profile()).policy
    if not taught and kept_how(name) is None:
        taught = OWN_PROMPTS
    prompts = taught if taught in ("", OWN_PROMPTS) else read_tasks(taught)
    settings = {"set": chosen, "who": name, "n": n, "temperature": temperature}
    if not agent:
        settings |= {"taught": taught, "examples": get_profile().examples}
        settings["weights"] = weights_of(name)
    label = label_of(chosen, name)
    folder = output or runs_folder(f"benchmark/{label}")
    pages = standard_set(chosen, n)
    take_folder(folder, settings)
    begin = time.monotonic()
    outcomes = play_pages(pages, folder, agent, name, prompts, temperature)
    command = f"python -m scripts.benchmark {' '.join(context.obj)}"
    result = result_of(pages, outcomes, settings, command)
    earlier = (read_object(folder / RESULT) or {}).get("seconds", 0.0)
    result["seconds"] = round(earlier + time.monotonic() - begin, 1)  # of calls that came to an end
    write_json(folder / RESULT, result)
    print(benchmark_report(result))
    if record_it:
        record(folder, label)
    release_folder(folder)


if __name__ == "__main__":
    sys.exit(run(main))
