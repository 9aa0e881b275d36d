"""What stands beside the pipeline: the notebooks' banner, figures, self-checks and widgets, and
what a kernel says to a reader (`kernel/`).

In come the objects of every other room (observations, episodes, ledgers, metrics); out go pictures
with alt text, printed sentences and widgets, and no room of the pipeline needs any of them.
Open `banner.py` first, the first call of each notebook; then `figures/`, which draws all pictures.
"""
