"""The form in which an executed notebook is committed: a second run differs in its results only."""

import os
from pathlib import Path

import nbformat
from nbconvert.preprocessors import ClearMetadataPreprocessor
from nbconvert.preprocessors.coalescestreams import CoalesceStreamsPreprocessor
from nbformat import NotebookNode

from helpers.settings.paths import ROOT

WIDGET = "application/vnd.jupyter.widget-view+json"
METADATA = {
    "kernelspec": {
        "display_name": "Python 3 (ipykernel)",
        "language": "python",
        "name": "python3",
    },
    "language_info": {
        "name": "python",
        "file_extension": ".py",
        "mimetype": "text/x-python",
    },
}


def normalise(notebook: NotebookNode, name: str) -> None:
    """Bring an executed notebook into this form, in place; ``name`` is that of its file.

    Widgets are left out: their state is large and differs with every run, and each widget has a
    static twin beside it.
    """
    notebook.metadata = nbformat.from_dict(METADATA)
    notebook.nbformat = 4
    notebook.nbformat_minor = 5
    ClearMetadataPreprocessor(
        clear_notebook_metadata=False, preserve_cell_metadata_mask={"tags", "jupyter", "name"}
    ).preprocess(notebook, {})
    # How a stream was cut into pieces is a matter of timing; of a line that was written over, as
    # a line of progress is, the last state stays.
    CoalesceStreamsPreprocessor().preprocess(notebook, {})
    seen = set()
    for number, cell in enumerate(notebook.cells):
        if not cell.get("id") or cell.id in seen:
            cell.id = f"{name[:2]}-{number:02d}"
        seen.add(cell.id)
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if keep(output)]
    nbformat.validate(notebook)


def keep(output: NotebookNode) -> bool:
    """Normalise one output; False where nothing of it is kept (a widget, an empty stream)."""
    if output.output_type == "stream":
        output.text = without_paths(output.text)
        return bool(output.text.strip())
    data = output.get("data", {})
    if WIDGET in data:
        del data[WIDGET]
        return bool(set(data) - {"text/plain"})
    for kind in ("text/plain", "text/html", "text/markdown"):
        if kind in data:
            data[kind] = without_paths(data[kind])
    return True


def without_paths(text: str) -> str:
    """The text without paths that only this machine has."""
    for path, name in ((str(ROOT), "."), (str(Path.home()), "~")):
        if len(path) > 1:
            text = text.replace(path + os.sep, name + os.sep).replace(path, name)
    return text
