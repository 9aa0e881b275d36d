"""Find a Chromium that Playwright can drive, and tell it what it may do."""

import json
import os
import shutil
from pathlib import Path

from helpers.settings.paths import ROOT

# The headless shell comes first: it draws the same pages with half the memory and a third less work
# per episode.
NAMES = (
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
)
BUNDLED = ROOT / ".cache" / "chromium" / "chromium"  # scripts/setup.py unpacks it there
MEND = "run `make setup`, or set COURSE_CHROMIUM to the path of a Chromium or Chrome"
# The first two are BrowserGym's, for scroll bars belong to the picture.
DISABLED_FEATURES = (
    "OverlayScrollbars",
    "ExtendedOverlayScrollbars",
    "SpareRendererForSitePerProcess",
    "PaintHolding",
)


def find_chromium() -> str:
    """The path of a usable Chromium: COURSE_CHROMIUM, else Playwright's own build, else the one of
    a bundle (scripts/bundle.py), else one on the PATH. FileNotFoundError, one sentence that names
    the mend, where there is none."""
    wanted = os.environ.get("COURSE_CHROMIUM")
    if wanted:
        if os.access(wanted, os.X_OK) and Path(wanted).is_file():
            return wanted
        raise FileNotFoundError(
            f"COURSE_CHROMIUM is {wanted!r}, which is no executable file; {MEND}."
        )
    for own in (_playwright_chromium(), BUNDLED):
        if own is not None and os.access(own, os.X_OK):
            return str(own)
    stub = ""
    for name in NAMES:
        found = shutil.which(name)
        if found is None:
            continue
        if not _is_snap(Path(found)):
            return found
        stub = stub or found
    why = (
        f"{stub} is a snap stub, which Playwright cannot drive" if stub else "no Chromium was found"
    )
    raise FileNotFoundError(f"There is no browser to use ({why}); {MEND}.")


def _playwright_chromium() -> Path | None:
    """Where ``playwright install chromium`` puts the build that this Playwright wants. It may not
    be there."""
    try:
        import playwright  # not everyone who looks for a browser has it: scripts/setup.py
    except ImportError:
        return None
    listing = Path(playwright.__file__).parent / "driver" / "package" / "browsers.json"
    try:
        browsers = json.loads(listing.read_text())["browsers"]
        revisions = [browser["revision"] for browser in browsers if browser["name"] == "chromium"]
        revision = revisions[0]
    except (OSError, ValueError, KeyError, IndexError):
        return None
    cache = Path.home() / ".cache" / "ms-playwright"
    root = Path(os.environ.get("PLAYWRIGHT_BROWSERS_PATH") or cache)
    return root / f"chromium-{revision}" / "chrome-linux" / "chrome"


def _is_snap(path: Path) -> bool:
    """Ubuntu's ``chromium-browser`` is a script (or a link) that only starts a snap: Playwright
    cannot drive that."""
    if path.resolve().name == "snap":
        return True
    with path.open("rb") as file:
        head = file.read(4096)
    return head.startswith(b"#!") and (b"/snap/" in head or b"snap install" in head)


def task_flags(host: str, port: int) -> list[str]:
    """How to start a Chromium in which only the task pages exist: those of ``host``, which are
    served on a local port."""
    return [
        # One renderer for all sessions and no site isolation (all show our pages, and one that
        # hangs takes the worker with it either way): -30 ms a reset. The limit of 60 frames a
        # second stays: without it pages that load draw all the time.
        "--renderer-process-limit=1",
        "--disable-site-isolation-trials",
        # A turn of the wheel would move the page for a tenth of a second, while we look.
        "--disable-smooth-scrolling",
        f"--disable-features={','.join(DISABLED_FEATURES)}",
        # Every other name leads nowhere.
        f"--host-resolver-rules=MAP {host} 127.0.0.1:{port}, MAP * ~NOTFOUND",
        # WebRTC sends packets to bare addresses.
        "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    ]
