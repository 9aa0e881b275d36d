"""A model that is quick to train, for tests of how it is trained."""

import torch
from transformers import LlamaConfig, LlamaForCausalLM


def tiny_llama(tokenizer):
    """A two-layer Llama with random weights, always the same, for a tokenizer's vocabulary."""
    torch.manual_seed(0)
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            initializer_range=0.3,
            tie_word_embeddings=True,
        )
    )
