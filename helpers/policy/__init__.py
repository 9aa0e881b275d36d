"""The policy: what it reads, how it answers, and where its weights come from.

In comes an observation of the browser, or the name of a policy; out go token ids of a prompt
(`prompts`), a model with its tokenizer (`loading`) and answers with their logprobs (`generators`,
`vllm_engine`). Open `prompts` first, then `generators`.
"""
