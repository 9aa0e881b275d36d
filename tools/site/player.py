"""The player of recorded episodes: its page in two languages, and what it plays.

`tools/record_player.py` records the episodes. A page that is opened from a folder may read no JSON,
but scripts: the recording becomes one.
"""

import json
import shutil
from pathlib import Path
from typing import Any

from helpers.settings.errors import CourseError
from helpers.settings.paths import RECORDINGS
from tools.site.documents import CHINESE, Document, leads
from tools.site.markdown import Heading, Page
from tools.site.standalone import PAGES, page_templates

RECORDING = RECORDINGS / "player"
RECORDING_SCRIPT = "player/recording.js"
FOLDER = Path(__file__).parent
PLACES = {"en": "player.html", "zh": "zh/player.html"}
TITLES = {"en": "Recorded episodes", "zh": "回合回放"}
# The heading of the results under which the two policies are described.
TOLD = {"en": "One policy for many tasks", "zh": "一个策略，多个任务"}


class NoRecordingError(CourseError):
    """There is nothing to play."""


def read_recording(folder: Path = RECORDING) -> dict[str, Any]:
    """What `tools.record_player` wrote into a folder; `NoRecordingError` without it."""
    path = folder / "episodes.json"
    if not path.is_file():
        raise NoRecordingError(f"There are no recorded episodes in {folder}: run `make player`.")
    return json.loads(path.read_text(encoding="utf-8"))


def player_page(language: str) -> Page:
    """The player's page, without the episodes."""
    place = PLACES[language]
    chinese = language == CHINESE
    environment = page_templates(PAGES, chinese)
    environment.globals["to"] = lambda there: leads(place, there)
    results = Document("docs/zh/results.md" if chinese else "docs/results.md")
    told = next(heading for heading in results.page.headings if heading.text == TOLD[language])
    html = environment.get_template("player.html.j2").render(
        title=TITLES[language],
        results=f"{leads(place, results.place)}#{told.anchor}",
        recording=read_recording(),
    )
    return Page(html, [Heading(1, "player", TITLES[language])])


def write_recording(site: Path) -> None:
    """Put the episodes and their pictures into the folder of a site."""
    folder = site / "player"
    folder.mkdir(parents=True, exist_ok=True)
    for picture in RECORDING.glob("*.webp"):
        shutil.copy(picture, folder)
    script = f"window.recording = {json.dumps(read_recording(), ensure_ascii=False)};\n"
    (site / RECORDING_SCRIPT).write_text(script, encoding="utf-8")
    shutil.copy(FOLDER / "assets" / "player.js", folder)
