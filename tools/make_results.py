"""Write the measured numbers into the READMEs: ``make results``. Nothing between markers is edited by hand.

    python tools/make_results.py              render them, here and in docs/teaching/, from recordings/
    python tools/make_results.py --baselines  play the agents without a model first, and record what they do

A block is ``<!-- begin NAME --> ... <!-- end -->``. What it holds comes from
recordings/<run>/result.json (`scripts.train`), recordings/course/times.json (the times.json of a ``make course``),
recordings/baselines/result.json, recordings/four_rollouts/episodes.jsonl, the results of the benchmarks
(recordings/environment, parity, faults, soak, rollouts, training, prompts), and `helpers.settings.profiles`.
"""

import argparse
import json
import re
import statistics
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path

from benchmarks.recording import RECORDINGS
from helpers.episodes.advantages import group_advantages
from helpers.episodes.episode import read_episodes
from helpers.episodes.tasks import TASKS, UNSEEN
from helpers.evaluation.statistics import macro_mean
from helpers.settings.paths import ROOT
from helpers.settings.predictions import predict
from helpers.settings.profiles import PROFILES, Profile, _scaled

FOUR = RECORDINGS / "four_rollouts" / "episodes.jsonl"
READMES = {"en": ROOT / "README.md", "zh": ROOT / "README_zh.md"}
GUIDES = {
    "en": ROOT / "docs" / "teaching" / "README.md",
    "zh": ROOT / "docs" / "zh" / "teaching" / "README.md",
}
BLOCK = re.compile(r"(<!-- begin (?P<name>[\w:]+) -->)(?P<body>.*?)(<!-- end -->)", re.DOTALL)

# (English, Chinese) for every word that a generated block uses.
WORDS = {
    "run": ("Run", "运行"),
    "task": ("Task", "任务"),
    "trained": ("Trained", "训练对象"),
    "seed": ("Seed", "种子"),
    "updates": ("Updates", "更新次数"),
    "before": ("Before", "训练前"),
    "after": ("After", "训练后"),
    "change": ("Change (points)", "变化（百分点）"),
    "minutes": ("Training (min)", "训练用时（分钟）"),
    "all weights": ("all weights", "全部权重"),
    "LoRA": ("LoRA", "LoRA"),
    "machine": ("Machine: ", "机器："),
    "memory peak": ("Memory (GB)", "内存（GB）"),
    "no runs": ("*No run is recorded yet.*", "*尚无记录的运行。*"),
    "success": (
        "Success on held-out seeds, greedy answers, with 95 % intervals. Made by:",
        "在留出种子上的成功率，贪心解码，附 95 % 区间。所用命令：",
    ),
    "agent": ("Baseline", "基线"),
    "solved": ("Solved", "成功率"),
    "random": ("random clicks", "随机点击"),
    "first_button": ("always the first button", "总是点第一个按钮"),
    "text_match": ("scripted: text match", "脚本：文本匹配"),
    "untrained": ("SmolLM2-135M, untrained", "未训练的 SmolLM2-135M"),
    "untrained-own": ("untrained, each task's own prompt", "未训练，各任务自己的提示"),
    "untrained-sampled": ("the same, sampled", "同前，采样"),
    "no baselines": ("*No baseline is recorded yet.*", "*尚无记录的基线。*"),
    "total": (
        "All of it: {total} min in one `make course` after installation, on {machine}.",
        "合计：安装之后一次 `make course` 用时 {total} 分钟，机器为 {machine}。",
    ),
    "no times": ("*Not measured yet.*", "*尚未测量。*"),
    "rollout": ("Rollout", "轨迹"),
    "what": ("What it did", "做了什么"),
    "reward": ("Reward", "奖励"),
    "advantage": ("Advantage", "优势"),
    "no four": ("*No four rollouts are recorded yet.*", "*尚无记录的四条轨迹。*"),
    "variable": ("Variable", "变量"),
    "meaning": ("Meaning", "含义"),
    "profile": ("Profile", "配置"),
    "policy": ("Policy", "策略"),
    "episodes": ("Episodes per update", "每次更新的回合数"),
    "demo min": ("Minutes (predicted)", "分钟（预测）"),
    "full min": ("Minutes at full scale (predicted)", "full 规模的分钟（预测）"),
    "memory": ("Memory, GB (predicted)", "内存，GB（预测）"),
    "door": ("Door", "入口"),
    "harness, ours": ("harness, our adapter", "harness，我们的适配器"),
    "harness, stock": ("harness, OpenEnv's adapter", "harness，OpenEnv 的适配器"),
    "yes": ("yes", "有"),
    "no": ("no", "无"),
    "prompt tokens": ("First prompt (tokens)", "首个提示（词元）"),
    "answer tokens": ("Answers (tokens)", "回答（词元）"),
    "episode tokens": ("Sequence (tokens)", "整个序列（词元）"),
    "mask": ("Mask", "掩码"),
    "s episode": ("Seconds an episode", "每回合秒数"),
    "gap": ("Largest logprob gap (nats)", "最大对数概率差（nat）"),
    "doors": (
        "{episodes} episodes of {task}, two actions each, that a script played through every door; the gap is that of the "
        "untrained policy's own answers. Made by `python -m benchmarks.doors --record`.",
        "{task} 的 {episodes} 个回合，每回合两个动作，由同一脚本经每个入口完成；差值来自未训练策略自己的回答。"
        "所用命令：`python -m benchmarks.doors --record`。",
    ),
    "observation": ("The page as", "页面形式"),
    "tree": ("tree", "无障碍树"),
    "screenshot": ("screenshot", "截图"),
    "both": ("both", "两者"),
    "marks": ("screenshot with marks", "带标记的截图"),
    "of the picture": ("of them the picture", "其中图像"),
    "reset ms": ("Reset (ms)", "重置（毫秒）"),
    "encode ms": ("Encode (ms)", "编码（毫秒）"),
    "observations": (
        "{picture_task}, medians of ten resets, encoded for a Qwen3-VL; a reset with a picture loads the page anew, "
        "one without may go on with the page as it stands.",
        "{picture_task}，十次重置的中位数，按 Qwen3-VL 编码；带图的重置重新加载页面，不带图的可以直接接着用。",
    ),
    "no suite": ("*Not recorded yet.*", "*尚无记录。*"),
    "tier": ("Tier", "级"),
    "oracle": ("scripted: oracle", "脚本：标准解"),
    "warm-up": ("after the warm-up", "监督预热之后"),
    "grpo": ("after GRPO", "GRPO 之后"),
    "mean seen": ("**mean, {n} tasks of the suite**", "**均值，套件中的 {n} 个任务**"),
    "mean unseen": ("**mean, {n} tasks never trained on**", "**均值，{n} 个从未训练的任务**"),
    "suite": (
        "Solved on test pages, n = {n} for each task (another n is named in the column's head); means with 95 % "
        "intervals. Made by:",
        "测试页面上的成功率，每个任务 n = {n}（不同时在表头注明）；均值附 95 % 区间。所用命令：",
    ),
    "loop": ("Loop", "循环"),
    "per second": ("Episodes per second", "每秒回合数"),
    "turns": ("Turns", "步数"),
    "generation": ("Time in generation", "生成所占时间"),
    "one at a time": ("stock, one at a time", "BrowserGym，逐个进行"),
    "warm": ("this environment, one at a time", "本课程的环境，逐个进行"),
    "batched": ("this environment, {n} at once", "本课程的环境，{n} 个同时"),
    "rollouts": (
        "Same policy, same pages, same engine ({generator}) on {cores} cores, temperature 1. Made by "
        "`python -m benchmarks.rollouts --record`.",
        "同样的策略、页面和引擎（{generator}），{cores} 核，温度为 1。"
        "所用命令：`python -m benchmarks.rollouts --record`。",
    ),
    "variant": ("Update of {n} episodes", "一次 {n} 个回合的更新"),
    "all": ("Seconds", "秒"),
    "decode": ("decode", "解码"),
    "prefill": ("prefill", "预填充"),
    "logprobs": ("logprobs", "对数概率"),
    "forward": ("forward", "前向"),
    "backward": ("backward", "反向"),
    "sync": ("sync", "同步权重"),
    "other": ("other", "其他"),
    "browser": ("browser", "浏览器"),
    "as in the course": ("as in the course", "课程中的做法"),
    "each prompt computed per rollout": (
        "each prompt computed for each rollout",
        "每条轨迹各算一遍提示",
    ),
    "transformers generates": (
        "transformers generates, not vLLM",
        "由 transformers 而不是 vLLM 生成",
    ),
    "bf16 weights": ("weights in bf16", "权重用 bf16"),
    "updates of": (
        "Mean of {updates} updates of {task} on {cores} cores, seconds in each part. Made by "
        "`python -m benchmarks.training --record`.",
        "{task} 在 {cores} 核上 {updates} 次更新的均值，各部分的秒数。"
        "所用命令：`python -m benchmarks.training --record`。",
    ),
    "prompt:tree": ("whole tree", "整棵树"),
    "prompt:lines and texts": ("lines and texts", "元素行和文字"),
    "prompt:lines": ("lines", "元素行"),
    "prompt:lines, no examples": ("lines, no examples", "元素行，无示例"),
    "script reads": ("script on: {name}", "脚本读：{name}"),
    "whole observation": ("whole observation", "整个观测"),
    "prompts": (
        "Tokens of an episode's first prompt, median / 95th percentile, and the success of the text-match script when "
        "it reads the whole observation or the prompt alone; n = {n} validation pages a task. Made by `{command}`.",
        "一个回合首个提示的词元数，中位数 / 95 % 分位数；以及文本匹配脚本读整个观测或只读提示时的成功率；"
        "每个任务 n = {n} 个验证页面。所用命令：`{command}`。",
    ),
    "policy reads": (
        "With the prompt that it was trained on ({usual}) a policy that learned {task} solves {rate}; {others} "
        "(n = {n}).",
        "学会 {task} 的策略，用训练时的提示（{usual}）解出 {rate}；{others}（n = {n}）。",
    ),
    "with prompt": ("with `{name}` {rate}", "用 `{name}` 为 {rate}"),
    "no environment": ("*Not measured yet.*", "*尚未测量。*"),
    "call": ("What it costs", "开销"),
    "here": ("here", "本课程"),
    "ratio": ("Ratio", "倍数"),
    "reset_ms": ("reset, ms", "重置，毫秒"),
    "click_ms": ("click, ms", "点击，毫秒"),
    "fill_ms": ("fill, ms", "填写，毫秒"),
    "screenshot_ms": ("screenshot, ms", "截图，毫秒"),
    "wire_bytes": ("observation, bytes", "一次观测的字节数"),
    "rate": ("episodes per second, {n} workers", "每秒回合数，{n} 个工作进程"),
    "environment": (
        "Medians of {repeat}, both sides in one run of `python -m benchmarks.environment` on {cores} cores; an episode is a "
        "reset and a click on click-button. Speed is worth nothing where the page is another one: "
        "`python -m benchmarks.parity` compares goal, tree, bids, clickable flags, focus, errors and rewards with recorded "
        "stock episodes of {tasks} tasks with {seeds} seeds each; {equal} of {observations} observations are equal. "
        "{not_covered} tasks cannot be compared; `benchmarks/parity.py` says why.",
        "{repeat} 次的中位数，两边在同一次 `python -m benchmarks.environment` 中测得，{cores} 核；"
        "一个回合是在 click-button 上一次重置加一次点击。页面若不相同，快也没有意义：`python -m benchmarks.parity` "
        "把目标、树、编号、可点击标记、焦点、错误和奖励与录下的 BrowserGym 回合逐一比较，{tasks} 个任务各 {seeds} 个种子；"
        "相同的观测为 {equal} / {observations}。有 {not_covered} 个任务无法比较，原因见 `benchmarks/parity.py`。",
    ),
    "bound": (
        "The bound is the CPU: with the best of these numbers of workers, {workers}, an episode takes {cpu:.0f} ms ({parts}), "
        "and {busy:.1f} of {cores} cores are busy. A click waits for some of the 60 frames a second; its worker serves other "
        "sessions meanwhile. A server takes {server:.0f} MB of memory, each further session {session:.0f} MB.",
        "瓶颈是 CPU：以上最快的是 {workers} 个工作进程，一个回合占用 {cpu:.0f} 毫秒（{parts}），"
        "{cores} 核中有 {busy:.1f} 核在忙。一次点击要等每秒 60 帧中的几帧，其间工作进程为别的会话服务。"
        "服务器占用 {server:.0f} MB 内存，每多一个会话再加 {session:.0f} MB。",
    ),
    "chromium": ("Chromium", "Chromium"),
    "playwright": ("Playwright's driver", "Playwright 驱动"),
    "worker": ("our workers", "工作进程"),
    "server": ("server", "服务器"),
    "client": ("client", "客户端"),
    "each task": (
        "Over all {n} tasks, each with its recorded actions, it is {median:.0f} times stock's episodes per second in the median, "
        "12 times or more on {many} of them and {least:.1f} times on the slowest (`--each-task`, "
        "recordings/environment/tasks.json). The slowest are pages with many elements, and those that are loaded anew for each "
        "episode.",
        "在全部 {n} 个任务上，按录下的动作，每秒回合数的中位数是 BrowserGym 的 {median:.0f} 倍，"
        "其中 {many} 个达到 12 倍以上，最慢的为 {least:.1f} 倍"
        "（`--each-task`，recordings/environment/tasks.json）。最慢的是元素很多的页面，以及每个回合都要重新加载的页面。",
    ),
    "faults": (
        "Browsers, workers and the server were killed or stopped, pages made to hang ({n} times in all, `python -m "
        "benchmarks.faults`): the next reset worked after {reset} s at the latest, and no episode lost that way earned a reward. "
        "Of {strings} hostile answers {unearned} earned one without pressing the button.",
        "浏览器、工作进程和服务器被杀死或暂停，页面被卡死（共 {n} 次，`python -m benchmarks.faults`）："
        "下一次重置最迟在 {reset} 秒后成功，这样丢失的回合都没有得到奖励。"
        "{strings} 个恶意回答中，有 {unearned} 个没按按钮却得到奖励。",
    ),
    "soak": (
        "After {n} episodes on one server (`python -m benchmarks.soak`) its memory had changed by {growth:+.1f} % since the "
        "warm-up, its open files by {descriptors:+d}; {zombies} zombies, {lost} episodes lost.",
        "一个服务器连续 {n} 个回合之后（`python -m benchmarks.soak`），内存与预热后相比变化 {growth:+.1f} %，"
        "打开的文件变化 {descriptors:+d}；僵尸进程 {zombies} 个，丢失的回合 {lost} 个。",
    ),
}
FIELDS = {
    "policy": ("the model: a short name, a Hub id or a folder", "模型：短名称、Hub id 或文件夹"),
    "generator": ("vllm or transformers", "vllm 或 transformers"),
    "dtype": ("precision of the weights", "权重的精度"),
    "task": ("MiniWoB++ task, or several with commas", "MiniWoB++ 任务，多个用逗号分隔"),
    "pages": (
        "chosen: train on pages with a choice; all: on every page",
        "chosen：只在有选择的页面上训练；all：所有页面",
    ),
    "examples": (
        "task: worked examples in the prompt; none: without",
        "task：提示中带示例；none：不带示例",
    ),
    "max_turns": ("turns per episode; 0: as many as the task has", "每个回合的步数；0：由任务决定"),
    "max_tokens": (
        "tokens per answer; 0: as many as the task has",
        "每个回答的 token 数；0：由任务决定",
    ),
    "temperature": ("of sampling while training", "训练时的采样温度"),
    "top_k": (
        "sample from so many tokens only; 0 is off, and should be",
        "只从这么多个 token 中采样；0 为关闭，也应当关闭",
    ),
    "groups": ("prompts per update", "每次更新的提示数"),
    "group_size": ("rollouts per prompt", "每个提示的轨迹数"),
    "accumulate": ("parts in which an update goes through the loss", "一次更新分几部分计算损失"),
    "updates": ("updates of a run", "一次运行的更新次数"),
    "learning_rate": ("for all weights", "训练全部权重时"),
    "lora_learning_rate": ("for LoRA", "训练 LoRA 时"),
    "lora_rank": ("rank of the adapters", "适配器的秩"),
    "warmup": ("updates until the learning rate is reached", "学习率预热的更新次数"),
    "entropy": ("weight of the entropy bonus", "熵奖励的权重"),
    "eval_episodes": ("held-out episodes per evaluation", "每次评估的留出回合数"),
    "probe_episodes": ("episodes of a quick measurement in a notebook", "笔记本中快速测量的回合数"),
    "workers": ("browser processes (at most one per core)", "浏览器进程数（至多每核一个）"),
    "clients": ("browser sessions", "浏览器会话数"),
    "save_every": ("updates between checkpoints", "两次检查点之间的更新次数"),
    "seed": ("training seed", "训练种子"),
    "vllm_memory": ("share of the GPU's memory for vLLM", "vLLM 占用的 GPU 内存比例"),
    "vllm_server": (
        "address of a `trl vllm-serve`, instead of an engine of its own",
        "`trl vllm-serve` 的地址，代替自己的引擎",
    ),
}


@dataclass
class Run:
    """A recorded training: its folder in recordings/ and the content of its result.json."""

    folder: Path
    result: dict

    @property
    def command(self) -> str:
        """The command that makes this run: what differs from the profile's own settings is spelt out."""
        if "command" in self.result:
            return self.result["command"]
        profile = self.result["profile"]
        usual = _scaled(PROFILES[profile["name"]], profile["scale"])
        # Neither what the command names in another way nor what has no effect on training.
        skip = (
            "name",
            "device",
            "memory_gb",
            "workers",
            "policy",
            "task",
            "updates",
            "seed",
            "scale",
            "probe_episodes",
        )
        settings = [
            f"COURSE_{f.name.upper()}={profile[f.name]}"
            for f in fields(Profile)
            if f.name not in skip
            and f.name in profile
            and profile[f.name] != getattr(usual, f.name)
        ]
        settings += [f"COURSE_SCALE={profile['scale']}"] if profile["scale"] != "demo" else []
        task = "suite" if profile["task"] == ",".join(TASKS) else profile["task"]
        settings += [
            "make train",
            f"POLICY={profile['policy']}",
            f"TASK={task}",
            f"UPDATES={profile['updates']}",
            f"SEED={profile['seed']}",
        ]
        return " ".join(settings + (["LORA=1"] if self.result["lora"] else []))


def find_runs(recordings: Path = RECORDINGS) -> list[Run]:
    """Every recorded training: task by task, full before LoRA, by seed."""
    runs = [
        Run(path.parent, json.loads(path.read_text())) for path in recordings.glob("*/result.json")
    ]
    runs = [run for run in runs if "profile" in run.result and run.result.get("before")]
    return sorted(
        runs,
        key=lambda r: (
            r.result["profile"]["task"],
            r.result["lora"],
            r.result["profile"]["seed"],
            r.folder.name,
        ),
    )


def recorded_result(name: str) -> dict:
    """recordings/NAME/result.json; an empty dict where there is none."""
    path = RECORDINGS / name / "result.json"
    return json.loads(path.read_text()) if path.exists() else {}


def rate(summary: dict) -> str:
    """ "29 % [21, 39]"."""
    return f"{100 * summary['success']:.0f} % [{100 * summary['low']:.0f}, {100 * summary['high']:.0f}]"


def table(head: list[str], rows: list[list]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def clock(seconds: float) -> str:
    """125.3 -> "2:05"."""
    return f"{round(seconds) // 60}:{round(seconds) % 60:02d}"


# Each of these returns a block; ``w`` looks up a word in the block's language.


def results(w) -> str:
    runs = find_runs()
    if not runs:
        return w("no runs")
    rows = []
    for run in runs:
        r, profile, change = run.result, run.result["profile"], run.result["difference"]
        rows.append(
            [
                f"[{run.folder.name}](recordings/{run.folder.name})",
                profile["task"],
                w("LoRA" if r["lora"] else "all weights"),
                profile["seed"],
                profile["updates"],
                rate(r["before"]),
                rate(r["after"]),
                "{:+d} [{:+d}, {:+d}]".format(
                    *(round(100 * change[k]) for k in ("change", "low", "high"))
                ),
                change["n"],
                f"{r['seconds']['training'] / 60:.1f}",
                r.get("peak_memory_gb", "–"),
            ]
        )
    head = [
        w(name)
        for name in ("run", "task", "trained", "seed", "updates", "before", "after", "change")
    ]
    head += ["n", w("minutes"), w("memory peak")]
    commands = "\n".join(dict.fromkeys(run.command for run in runs))
    machines = sorted(
        {
            f"{run.result['machine']}; "
            + ", ".join(f"{k} {v}" for k, v in run.result["versions"].items())
            for run in runs
        }
    )
    return f"{table(head, rows)}\n\n{w('success')}\n\n```\n{commands}\n```\n\n" + "\n".join(
        f"{w('machine')}{machine}" for machine in machines
    )


def baselines(w) -> str:
    if not (recorded := recorded_result("baselines")):
        return w("no baselines")
    runs = find_runs()
    rows = [
        [w(name), summary["tasks"][0], rate(summary), summary["n"]]
        for name, summary in recorded["agents"].items()
    ]
    tasks = {row[1] for row in rows}
    for run in runs:
        summary = run.result["before"]
        if run.result["profile"]["policy"] == "smollm2-135m" and summary["tasks"][0] in tasks:
            rows.append([w("untrained"), summary["tasks"][0], rate(summary), summary["n"]])
            break
    return table([w("agent"), w("task"), w("solved"), "n"], rows)


def read_times() -> dict:
    path = RECORDINGS / "course" / "times.json"
    return json.loads(path.read_text()) if path.exists() else {}


def times(w) -> str:
    recorded = read_times()
    if not recorded:
        return w("no times")
    return w("total").format(
        total=clock(sum(n["seconds"] for n in recorded["notebooks"])), machine=recorded["machine"]
    )


def one_time(number: str) -> str:
    found = [
        n
        for n in read_times().get("notebooks", [])
        if n["name"].startswith(number) and not n["error"]
    ]
    return f"{clock(found[0]['seconds'])} min" if found else "–"


def four_rollouts(w) -> str:
    if not FOUR.exists():
        return w("no four")
    episodes = read_episodes(FOUR)
    advantages = group_advantages([e.reward for e in episodes], len(episodes))
    rows = []
    for number, (e, advantage) in enumerate(zip(episodes, advantages, strict=True), 1):
        did = ", ".join(f"`{turn.parsed.action or turn.parsed.kind}`" for turn in e.turns)
        rows.append([number, did, f"{e.reward:g}", f"{advantage:+.2f}"])
    return table([w(name) for name in ("rollout", "what", "reward", "advantage")], rows)


def settings(w) -> str:
    rows = []
    for name, meaning in FIELDS.items():
        values = [getattr(profile, name) for profile in PROFILES.values()]
        shown = [f"{value:g}" if isinstance(value, float) else value for value in values]
        rows.append([f"`COURSE_{name.upper()}`", meaning[w.language], *shown])
    return table([w("variable"), w("meaning"), *PROFILES], rows)


def predictions(w) -> str:
    rows = []
    for name, profile in PROFILES.items():
        if (
            profile.device == "cpu"
        ):  # measured above, and the prediction follows the machine's cores
            continue
        demo, full = predict(profile), predict(_scaled(profile, "full"))
        rows.append(
            [
                name,
                profile.policy,
                profile.updates,
                profile.batch,
                f"{demo['minutes']:.0f}",
                f"{full['minutes']:.0f}",
                f"{demo['memory_gb']:.1f}",
            ]
        )
    return table(
        [
            w(n)
            for n in ("profile", "policy", "updates", "episodes", "demo min", "full min", "memory")
        ],
        rows,
    )


def environment(w) -> str:
    if not (recorded := recorded_result("environment")):
        return w("no environment")
    parity = recorded_result("parity")
    rows = [
        [
            w(name),
            *(f"{recorded[name][side]:,.0f}" for side in ("stock", "ours")),
            f"{recorded[name]['ratio']:.0f}",
        ]
        for name in ("reset_ms", "click_ms", "fill_ms", "screenshot_ms", "wire_bytes")
    ]
    rates = recorded["episodes_per_s"]
    rows += [
        [
            w("rate").format(n=n),
            f"{rates['stock'][n]:.2f}",
            f"{rates['ours'][n]:.1f}",
            f"{rates['ratio'][n]:.0f}",
        ]
        for n in rates["ours"]
    ]
    text = w("environment").format(
        repeat=recorded["repeat"],
        cores=recorded["cores"],
        tasks=parity["tasks"],
        seeds=parity["seeds"],
        observations=f"{parity['observations']:,}",
        equal=f"{parity['equal']:,}",
        not_covered=len(parity["not_covered"]),
    )
    return "\n\n".join(
        [
            table([w("call"), "BrowserGym", w("here"), w("ratio")], rows),
            text,
            bound(w, recorded),
            *endurance(w),
        ]
    )


def bound(w, recorded: dict) -> str:
    """What limits the episodes per second, at the number of workers with the most of them."""
    rates = recorded["episodes_per_s"]["ours"]
    workers = max(rates, key=rates.get)
    parts: Counter = Counter()
    for name, ms in recorded["cpu_ms"][workers].items():
        parts[name.split()[0]] += ms
    shown = ", ".join(f"{w(name)} {ms:.0f}" for name, ms in parts.most_common())
    cpu, memory = sum(parts.values()), recorded["memory_mb"]
    return w("bound").format(
        workers=workers,
        cpu=cpu,
        parts=shown,
        busy=cpu * rates[workers] / 1_000,
        cores=recorded["cores"],
        server=memory["server"],
        session=memory["per_session"],
    )


def endurance(w) -> Iterator[str]:
    """A sentence for each further recording of the environment that is there."""
    if (path := RECORDINGS / "environment" / "tasks.json").exists():
        ratios = [row["ratio"] for row in json.loads(path.read_text())["tasks"].values()]
        yield w("each task").format(
            n=len(ratios),
            median=statistics.median(ratios),
            least=min(ratios),
            many=sum(ratio >= 12 for ratio in ratios),
        )
    if found := recorded_result("faults"):
        sent, unearned = (
            sum(kind[name] for kind in found["strings"].values())
            for name in ("sent", "paid_without_button")
        )
        yield w("faults").format(
            n=len(found["faults"]),
            reset=max(f["next_reset_s"] for f in found["faults"]),
            strings=f"{sent:,}",
            unearned=unearned,
        )
    if found := recorded_result("soak"):
        last = found["rows"][-1]
        yield w("soak").format(
            n=f"{last['episodes']:,}",
            growth=100 * found["memory_growth"],
            descriptors=found["descriptors"],
            zombies=last["zombies"],
            lost=last["lost"],
        )


COLUMNS = (
    "random",
    "first_button",
    "text_match",
    "oracle",
    "untrained",
    "untrained-own",
    "untrained-sampled",
    "warm-up",
    "grpo",
)


def suite(w) -> str:
    """One policy for the whole suite: a row per task, a column per evaluation (recordings/suite/NAME/evaluation.json)."""
    found = {
        name: json.loads(path.read_text())
        for name in COLUMNS
        if (path := RECORDINGS / "suite" / name / "evaluation.json").exists()
    }
    if not found:
        return w("no suite")
    parts = {name: recorded["result"]["by_task"] for name, recorded in found.items()}
    usual = max(part["n"] for part in parts["random"].values())
    rows = []
    for kind, tasks in (("mean seen", TASKS), ("mean unseen", UNSEEN)):
        for task, spec in tasks.items():
            cells = [
                f"{100 * p[task]['success']:.0f} %" if task in p else "–" for p in parts.values()
            ]
            rows.append([task, spec.tier, *cells])
        means = []
        for p in parts.values():
            rates = [(p[t]["success"], p[t]["n"]) for t in tasks if t in p]
            mean, low, high = macro_mean(rates)
            means.append(
                f"{100 * mean:.0f} % [{100 * low:.0f}, {100 * high:.0f}]" if rates else "–"
            )
        rows.append([w(kind).format(n=len(tasks)), "", *means])
    heads = []
    for name, p in parts.items():
        n = max(part["n"] for part in p.values())
        heads.append(w(name) + (f" (n = {n})" if n < 0.9 * usual else ""))
    files = [
        path
        for name in found
        for path in sorted((RECORDINGS / "suite" / name).glob("*.json"), reverse=True)
    ]
    commands = "\n".join(
        Run(path.parent, json.loads(path.read_text())).command for path in files
    )  # training, then its test
    return f"{table([w('task'), w('tier'), *heads], rows)}\n\n{w('suite').format(n=usual)}\n\n```\n{commands}\n```"


def doors(w) -> str:
    """Two tables: what each door into a task costs, and each way to show a page (recordings/doors/result.json)."""
    if not (recorded := recorded_result("doors")):
        return w("no suite")
    doors = [
        [
            f"`{name}`" if "_" in name else w(name),
            round(d["prompt_tokens"]),
            round(d["answer_tokens"]),
            round(d["episode_tokens"]),
            w("yes" if d["masked"] else "no"),
            f"{d['seconds']:.2f}",
            "–" if d["gap"] is None else f"{d['gap']:.0e}",
        ]
        for name, d in recorded["doors"].items()
    ]
    head = [
        w(key)
        for key in (
            "door",
            "prompt tokens",
            "answer tokens",
            "episode tokens",
            "mask",
            "s episode",
            "gap",
        )
    ]
    shown = [
        [
            w(name),
            round(o["tokens"]),
            round(o["of_the_picture"]),
            round(o["reset_ms"]),
            f"{o['encode_ms']:.1f}",
        ]
        for name, o in recorded["observations"].items()
    ]
    second = [
        w(key)
        for key in ("observation", "prompt tokens", "of the picture", "reset ms", "encode ms")
    ]
    return "\n\n".join(
        [
            table(head, doors),
            w("doors").format(**recorded),
            table(second, shown),
            w("observations").format(**recorded),
        ]
    )


def rollouts(w) -> str:
    """Episodes per second of three loops (recordings/rollouts/result.json)."""
    if not (found := recorded_result("rollouts")):
        return w("no environment")
    rows = [
        [
            task,
            w(name).format(n=found["sessions"]),
            f"{row['episodes_per_s']:.2f}",
            f"{row['ratio']:.0f}",
            row["turns"],
            f"{100 * row['generation_share']:.0f} %",
        ]
        for task, loops in found["tasks"].items()
        for name, row in loops.items()
    ]
    head = [w(name) for name in ("task", "loop", "per second", "ratio", "turns", "generation")]
    text = w("rollouts").format(
        generator=found["generator"].removesuffix("Generator"), cores=found["cores"]
    )
    return f"{table(head, rows)}\n\n{text}"


def updates(w) -> str:
    """Where the seconds of an update go (recordings/training/result.json)."""
    if not (found := recorded_result("training")):
        return w("no environment")
    parts = ("prefill", "decode", "logprobs", "forward", "backward", "sync", "other")
    rows = [
        [
            w(name),
            *(f"{row[part]:.1f}" for part in ("update_s", "environment", *parts)),
            f"{row['ratio']:.2f}",
        ]
        + [f"{row['largest_logprob_gap']:.0e}"]
        for name, row in found["variants"].items()
    ]
    head = [
        w("variant").format(n=found["episodes"]),
        w("all"),
        w("browser"),
        *map(w, parts),
        w("ratio"),
        w("gap"),
    ]
    n = next(iter(found["variants"].values()))["updates"]
    return f"{table(head, rows)}\n\n{w('updates of').format(updates=n, **found)}"


def prompts(w) -> str:
    """How long prompts are and what the shorter ones lose (recordings/prompts/result.json)."""
    if not (found := recorded_result("prompts")):
        return w("no environment")
    first = next(iter(found["tasks"].values()))

    def label(name: str) -> str:
        return w(name if name == "whole observation" else f"prompt:{name}")

    rows = [
        [
            task,
            *(f"{median:.0f} / {high}" for median, high in row["tokens"].values()),
            *(f"{100 * solved / n:.0f} %" for solved, n in row["script"].values()),
        ]
        for task, row in found["tasks"].items()
    ]
    head = [
        w("task"),
        *map(label, first["tokens"]),
        *(w("script reads").format(name=label(name)) for name in first["script"]),
    ]
    lines = [table(head, rows), w("prompts").format(**found)]
    for task, row in found["tasks"].items():
        if tried := row["policy"]:
            others = [
                w("with prompt").format(name=label(name), rate=rate(tried[name]))
                for name in tried
                if name != row["usual"]
            ]
            usual = tried[row["usual"]]
            lines.append(
                w("policy reads").format(
                    usual=label(row["usual"]),
                    task=task,
                    rate=rate(usual),
                    n=usual["n"],
                    others=", ".join(others),
                )
            )
    return "\n\n".join(lines)


BLOCKS = {
    f.__name__: f
    for f in (
        suite,
        rollouts,
        updates,
        prompts,
        doors,
        results,
        baselines,
        times,
        four_rollouts,
        settings,
        predictions,
        environment,
    )
}


def render(text: str, language: str) -> str:
    """The text of a README with every generated block as the recordings have it. KeyError for a block that is unknown."""
    column = list(READMES).index(language)

    def w(name: str) -> str:
        return WORDS[name][column]

    w.language = column

    def fill(match: re.Match) -> str:
        name = match["name"]
        body = (
            one_time(name.removeprefix("time:"))
            if name.startswith("time:")
            else f"\n\n{BLOCKS[name](w)}\n\n"
        )
        return f"{match[1]}{body}{match[4]}"

    return BLOCK.sub(fill, text)


def record_baselines(task: str) -> None:
    """Play the agents without a model on the seeds of the evaluation; write recordings/baselines/result.json."""
    from helpers.browser import start_browser_server
    from helpers.episodes.play import play_agent
    from helpers.episodes.tasks import TEST_SEEDS, specs
    from helpers.evaluation.baselines import AGENTS
    from helpers.evaluation.evaluate import Evaluation
    from helpers.settings.profiles import get_profile

    n, summaries = get_profile().eval_episodes, {}
    with start_browser_server(workers=2) as server:
        clients = server.clients(4)
        for name in ("random", "first_button", "text_match"):
            # One click, as the policy has.
            evaluation = Evaluation(
                name, play_agent(AGENTS[name], specs(task, TEST_SEEDS, n), clients, max_turns=1)
            )
            summaries[name] = evaluation.summary()
            print(f"  {evaluation}", flush=True)
    path = RECORDINGS / "baselines" / "result.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        json.dumps(
            {"command": "python tools/make_results.py --baselines", "agents": summaries}, indent=1
        )
        + "\n"
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--baselines", action="store_true", help="play and record the agents without a model first"
    )
    parser.add_argument("--task", default="click-button", help="the task of the baselines")
    options = parser.parse_args()
    if options.baselines:
        record_baselines(options.task)
    for language, path in (*READMES.items(), *GUIDES.items()):
        old = path.read_text(encoding="utf-8")
        new = render(old, language)
        path.write_text(new, encoding="utf-8")
        print(f"  {path.relative_to(ROOT)}: {'as it was' if new == old else 'updated'}")
    missing = [
        name
        for name, there in (
            ("recordings/<run>/result.json", find_runs()),
            ("recordings/course/times.json", read_times()),
            ("recordings/baselines/result.json", (RECORDINGS / "baselines").exists()),
            ("recordings/four_rollouts/episodes.jsonl", FOUR.exists()),
        )
        if not there
    ]
    if missing:
        print(f"  not recorded yet: {', '.join(missing)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
