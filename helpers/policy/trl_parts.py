"""TRL's trainer and what starts its engines, imported without vLLM and trackio.

TRL imports both wherever they are installed, which takes half of the processor time of the import,
and 170 MB. Who samples with transformers, or from a vLLM server, never needs vLLM, and who samples
with an engine in this process imports it by making one; trackio is for runs that log to it.
"""

from helpers.settings.imports import imported_when_called, without_collecting

with without_collecting(), imported_when_called("vllm", "trackio"):
    from trl import GRPOTrainer
    from trl.generation import vllm_generation

__all__ = ["GRPOTrainer", "vllm_generation"]
