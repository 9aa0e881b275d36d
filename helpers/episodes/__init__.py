"""Which episodes are played, how they are played, and what they leave behind.

In come tasks and seeds, open browser sessions and a player (a policy, a script, an agent, a
harness); out go `Episode`s, each with the ledger of the tokens that a trainer trains on, and from
them rewards and advantages. Open `play` first: it is the one loop; then `running` for what one
answer does, and `ledger` for what a trainer is owed.
"""
