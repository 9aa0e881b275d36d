"""What of the Hub can be had here: its weights, where it answers or where they are in its cache.

transformers would find out as well, but only after minutes of trying again.
"""

# huggingface_hub takes a second to import, and a policy from a package or a folder needs none.
from __future__ import annotations

from pathlib import Path

from helpers.output import hide_other_bars
from helpers.policy.weights import INDEX, shards_of

PATIENCE = 5  # seconds until a Hub that does not answer is taken for one that is not there


def hub_has(hub_id: str) -> bool:
    """Whether a model's weights are in the Hub's cache, or can be downloaded now."""
    return weights_are_cached(hub_id) or hub_answers(hub_id)


def weights_are_cached(hub_id: str) -> bool:
    """Whether all weights of a model are in the Hub's cache on this machine."""
    if _cached(hub_id, "config.json") is None:
        return False
    if _cached(hub_id, "model.safetensors") is not None:
        return True
    index = _cached(hub_id, INDEX)
    if index is None:
        return False
    shards = shards_of(index)
    return bool(shards) and all(_cached(hub_id, shard) is not None for shard in shards)


def _cached(hub_id: str, file: str) -> Path | None:
    """Where the Hub's cache has a file of a model; None where it does not."""
    from huggingface_hub import try_to_load_from_cache

    found = try_to_load_from_cache(hub_id, file)  # a path, or one of two words for "no"
    return Path(found) if isinstance(found, str) else None


def hub_answers(hub_id: str) -> bool:
    """Whether the Hub hands out a model's files: it is asked for the smallest."""
    import huggingface_hub

    hide_other_bars()
    huggingface_hub.logging.set_verbosity_error()
    try:
        # What is in the cache would be no answer of the Hub.
        huggingface_hub.hf_hub_download(
            hub_id, "config.json", force_download=True, etag_timeout=PATIENCE
        )
    except (OSError, ValueError):  # no network, HF_HUB_OFFLINE, no such model, no permission
        return False
    return True
