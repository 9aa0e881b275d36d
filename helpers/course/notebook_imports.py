"""Importing this imports all that the notebooks with exercises import, torch and TRL among it.

It takes seconds, so a program that judges many notebooks does it once (scripts/marks.py).
"""

from helpers.course.handed_in import cells_of, definitions, exercises

for notebook in {exercise.notebook for exercise in exercises()}:
    definitions(cells_of(notebook))
