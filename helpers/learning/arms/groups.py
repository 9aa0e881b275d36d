"""What the groups were that a run was trained on, as a small file: the episodes are large."""

import csv
import io
from itertools import groupby
from pathlib import Path

from helpers.episodes.episode import read_recording
from helpers.settings.files import write_whole

GROUPS = "groups.csv"  # in the folder of a run
COLUMNS = ("update", "task", "seed", "solved", "episodes")


def write_groups(recording: Path) -> Path:
    """Write the groups of ``recording`` (episodes.jsonl) beside it; returns where.

    A line has the update, the page, and how many of the group's episodes were solved. Two groups of
    one update that follow each other on the same page are one line.
    """
    played = read_recording(recording)
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(COLUMNS)
    for (update, task, seed), group in groupby(played, lambda it: (it[0], it[1].task, it[1].seed)):
        solved = [episode.solved for _, episode in group]
        lines.writerow([update, task, seed, sum(solved), len(solved)])
    path = recording.with_name(GROUPS)
    write_whole(path, text.getvalue())
    return path
