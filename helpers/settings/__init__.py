"""What this machine can do and what the reader chose, as one frozen `Profile`.

In come the machine (its GPU, its memory, whether vLLM is installed) and the ``COURSE_*`` variables;
out goes a `Profile` that every other room reads, or one sentence about what cannot be used.
Open `profiles.py` first: it lists every setting; `predictions.py` says what a run will take, and
`run_folder.py` and `files.py` how it writes.
"""
