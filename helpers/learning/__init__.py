"""The policy learns: browser episodes become advantages, a loss, and new weights.

In come a `Profile`, a policy and open browser sessions; out go a trained policy, the metrics of
every update, the episodes that were played, and ``result.json``. Open `trainer` first: it follows
one update through the five stages of ``media/the_loop.png``; `run` puts a whole run together.
"""
