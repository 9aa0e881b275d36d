"""How good a policy is: held-out pages, played and counted.

Comes in: a policy, or an agent without one, and tasks. Goes out: an `Evaluation`, the episodes with
their success and its interval, task by task, and the change between two of them on the same pages.
Open `evaluate.py` first; `agents.py` and `scripted/` hold who plays without a model.
"""
