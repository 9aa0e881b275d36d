"""What is added to the worker of a vLLM server on a CPU: it loads the weights of a file.

vLLM imports this module in the server's worker (``--worker-extension-cls``) and lets the worker's
class inherit from `FolderWorker`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from torch import Tensor


class FolderWorker:
    """Mixed into vLLM's worker, which brings the runner of its model."""

    model_runner: Any

    def load_weights_of_file(self, file: str) -> None:
        """Take the weights of a safetensors file, named as in a checkpoint; all of them at once."""
        from safetensors.torch import load_file

        reload_weights(self.model_runner, load_file(file).items())


def reload_weights(runner: Any, weights: Iterable[tuple[str, Tensor]]) -> None:
    """Load new weights into the model of vLLM's CPU build, whose runner this is.

    This build repacks its weights when it loads them: they cannot be copied into place.
    """
    runner.reload_weights(weights_iterator=weights)
    if runner.model_config.hf_text_config.tie_word_embeddings:
        # The output head has a packed copy of the embeddings, which reloading leaves as it was
        # before training: the logprob gap would grow with every update.
        model = runner.get_model()
        model.lm_head.weight = model.model.embed_tokens.weight
        model.lm_head.quant_method.process_weights_after_loading(model.lm_head)
