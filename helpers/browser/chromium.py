"""Find a Chromium that Playwright can drive, and tell it what it may do."""

import json
import os
import shutil
from pathlib import Path

# The headless shell comes first: it draws the same pages with half the memory and a third less work per episode.
NAMES = (
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
)
MEND = "run `make setup`, or set COURSE_CHROMIUM to the path of a Chromium or Chrome"


def _playwright_chromium() -> Path | None:
    """Where ``playwright install chromium`` puts the build that this Playwright wants (it may not be there)."""
    try:
        import playwright

        listing = Path(playwright.__file__).parent / "driver" / "package" / "browsers.json"
        revision = next(
            b["revision"]
            for b in json.loads(listing.read_text())["browsers"]
            if b["name"] == "chromium"
        )
    except (ImportError, OSError, ValueError, KeyError, StopIteration):
        return None
    root = Path(
        os.environ.get("PLAYWRIGHT_BROWSERS_PATH") or Path.home() / ".cache" / "ms-playwright"
    )
    return root / f"chromium-{revision}" / "chrome-linux" / "chrome"


def _is_snap(path: Path) -> bool:
    """Ubuntu's ``chromium-browser`` is a script (or a link) that only starts a snap: Playwright cannot drive that."""
    if path.resolve().name == "snap":
        return True
    with path.open("rb") as file:
        head = file.read(4096)
    return head.startswith(b"#!") and (b"/snap/" in head or b"snap install" in head)


def find_chromium() -> str:
    """The path of a usable Chromium: COURSE_CHROMIUM, else Playwright's own build, else one on the PATH.

    Raises FileNotFoundError with one sentence that names the mend.
    """
    if wanted := os.environ.get("COURSE_CHROMIUM"):
        if os.access(wanted, os.X_OK) and Path(wanted).is_file():
            return wanted
        raise FileNotFoundError(
            f"COURSE_CHROMIUM is {wanted!r}, which is no executable file; {MEND}."
        )
    own = _playwright_chromium()
    if own is not None and os.access(own, os.X_OK):
        return str(own)
    snaps = []
    for name in NAMES:
        if found := shutil.which(name):
            if not _is_snap(Path(found)):
                return found
            snaps.append(found)
    why = (
        f"{snaps[0]} is a snap stub, which Playwright cannot drive"
        if snaps
        else "no Chromium was found"
    )
    raise FileNotFoundError(f"There is no browser to use ({why}); {MEND}.")


def task_flags(host: str, port: int) -> list[str]:
    """How to start a Chromium in which only the task pages exist: those of ``host``, which are served on a local port."""
    return [
        # One renderer for all sessions and no site isolation (all show our pages, and one that hangs takes the worker with
        # it either way): -30 ms a reset. The limit of 60 frames a second stays: without it pages that load draw all the time.
        "--renderer-process-limit=1",
        "--disable-site-isolation-trials",
        "--disable-smooth-scrolling",  # a turn of the wheel would move the page for a tenth of a second, while we look
        # The first two are BrowserGym's (scroll bars belong to the picture).
        "--disable-features=OverlayScrollbars,ExtendedOverlayScrollbars,SpareRendererForSitePerProcess,PaintHolding",
        f"--host-resolver-rules=MAP {host} 127.0.0.1:{port}, MAP * ~NOTFOUND",  # every other name leads nowhere
        "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",  # WebRTC sends packets to bare addresses
    ]
