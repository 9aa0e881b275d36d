"""What reinforcement learning adds to demonstrations: one experiment, its tasks chosen by a rule.

In come scripts that solve tasks and a policy; out come the tasks that a warm-up leaves half solved,
a run per arm and training seed, and a table of paired comparisons. Open `plan` first: it is what is
decided before anything is measured; then `experiment`, which goes through it.
"""
