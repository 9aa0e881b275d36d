"""Whether a policy that was saved in a folder is all there, seen from the files: nothing is loaded.

transformers itself starts what it does not find in weights at random, with a warning at most.
"""

from pathlib import Path

from helpers.settings.files import read_object

INDEX = "model.safetensors.index.json"
TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.json", "spiece.model")


def problem_of_policy(folder: Path) -> str:
    """What a folder lacks to be a policy, as a phrase; empty where it has everything."""
    config = read_object(folder / "config.json")
    if config is None or not config.get("model_type"):
        return "config.json is missing, or no configuration of a model"
    tokenizers = [folder / name for name in TOKENIZERS if (folder / name).exists()]
    if not tokenizers:
        return "there is no tokenizer (tokenizer.json)"
    if tokenizers[0].suffix == ".json" and read_object(tokenizers[0]) is None:
        return f"{tokenizers[0].name} is cut short or damaged"
    if not any([*folder.glob("*.safetensors"), *folder.glob("*.bin"), *shards_of(folder / INDEX)]):
        return "there are no weights (model.safetensors)"
    return problem_of_weights(folder)


def problem_of_weights(folder: Path) -> str:
    """What is wrong with the safetensors files of a folder, as a phrase; empty where nothing is."""
    for path in sorted(folder.glob("*.safetensors")):
        problem = _problem_of_file(path)
        if problem:
            return f"{path.name} {problem}"
    missing = [name for name in shards_of(folder / INDEX) if not (folder / name).exists()]
    return f"{missing[0]} is missing" if missing else ""


def _problem_of_file(path: Path) -> str:
    """What a file's own table of contents says about its length; empty where they agree."""
    from safetensors import SafetensorError, safe_open  # imports numpy

    try:
        with safe_open(path, framework="np"):
            return ""
    except (SafetensorError, OSError) as error:
        return f"is cut short or damaged ({error})"


def shards_of(index: Path) -> list[str]:
    """The files that the index of large weights names; none where there is no index."""
    content = read_object(index) or {}
    return sorted(set(content.get("weight_map", {}).values()))
