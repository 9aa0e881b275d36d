"""A model that is quick to train, for tests of how it is trained, and what it was trained on."""

import torch
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM
from trl.chat_template_utils import qwen3_chat_template

from helpers.policy.lora import lora_of_rank


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


def tiny_policy_in(folder, tokenizer):
    """Such a model and its tokenizer in a folder, which is then the name of a policy."""
    tiny_llama(tokenizer).save_pretrained(str(folder))
    tokenizer.save_pretrained(str(folder))
    return folder


def tiny_tool_caller(policy):
    """Such a model for a policy's tokenizer, and the tokenizer with a template that takes tools."""
    tokenizer = AutoTokenizer.from_pretrained(policy.path)
    tokenizer.chat_template = qwen3_chat_template
    return tiny_llama(tokenizer), tokenizer


def tiny_adapter(folder, tokenizer):
    """The folder of an adapter on such a model, which lies beside it."""
    from peft import get_peft_model

    model = tiny_llama(tokenizer)
    model.save_pretrained(str(folder / "base"))
    tokenizer.save_pretrained(str(folder / "base"))
    adapted = get_peft_model(model, lora_of_rank(2, "llama"))
    adapted.peft_config["default"].base_model_name_or_path = str(folder / "base")
    adapted.save_pretrained(str(folder / "adapter"))
    return str(folder / "adapter")


def remember_batches(trainer):
    """The batches that the trainer's loss gets, as a list that grows."""
    batches = []
    compute_loss = trainer._compute_loss

    def remember(model, inputs):
        batches.append(inputs)
        return compute_loss(model, inputs)

    trainer._compute_loss = remember
    return batches
