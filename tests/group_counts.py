"""What the groups of a run could teach, counted in its groups.csv."""

import csv


def teaching_groups(path):
    """How many groups of a run differed in their outcome, were all solved, or never."""
    counts = {"differ": 0, "all": 0, "none": 0}
    with path.open() as file:
        for row in csv.DictReader(file):
            solved, episodes = int(row["solved"]), int(row["episodes"])
            counts["none" if not solved else "all" if solved == episodes else "differ"] += 1
    return counts
