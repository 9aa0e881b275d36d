"""Paid for the wrong thing: one policy, trained on three rewards, and what each makes of it.

In come a policy and pages on which a box has to be ticked before Submit; out come a run per reward
and training seed, and a table of what was solved, what was paid, and how often a page was submitted
as it was. Open `plan` first, then `experiment`.
"""
