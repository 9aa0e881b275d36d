"""One browser server for a room: ``make room SEATS=20``.

Each seat gets a token of its own and a share of the browser sessions. What stands on its card
(OUT/cards.html, to print and cut) opens the notebooks on that laptop with the browsers of this
machine. While it runs it shows who is there, and what `make ready` said on each laptop. Ctrl-C
closes the room; called again it opens the same one, with the same tokens.
"""

import json
import secrets
import signal
import socket
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import jinja2
import psutil
import typer
from rich.console import Console

from helpers.browser import BrowserServer, BrowserServerError, start_browser_server
from helpers.command_line import run
from helpers.output import table
from helpers.settings.errors import CourseError
from helpers.settings.files import RunFileError, write_json, write_whole
from helpers.settings.paths import ROOT
from helpers.settings.run_folder import hold_folder, release_folder

CARDS = ROOT / "deploy" / "room" / "cards.html.j2"
# Measured (docs/environment.md): a server, and what a session adds.
SERVER_MB = 577
SESSION_MB = 12
LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"  # none that is mistaken for another when it is typed
TOKEN_LETTERS = 12
LOOK_SECONDS = 2.0


class RoomError(CourseError):
    """A room cannot be opened like this; the message is one sentence with the next step."""


def main(
    seats: Annotated[int, typer.Option(min=1, max=200, help="laptops in the room")] = 20,
    sessions: Annotated[
        int, typer.Option(min=1, max=64, help="browser sessions that a seat may have at a time")
    ] = 8,
    port: Annotated[int, typer.Option(min=1, max=65_535)] = 8765,
    address: Annotated[
        str, typer.Option(help="of this machine, as the laptops reach it (default: looked up)")
    ] = "",
    workers: Annotated[int, typer.Option(min=0, max=256, help="0: about one per core")] = 0,
    output: Annotated[Path, typer.Option(help="folder of tokens and cards")] = Path("runs/room"),
) -> None:
    """Serve the browsers of a room, with a token for each seat."""
    check_memory(seats * sessions)
    hold_folder(output)
    output.chmod(0o700)  # who reads the tokens can use the browsers
    room = read_room(output, seats)
    base = f"http://{{seat}}:{{token}}@{address or own_address()}:{port}"
    lines = {
        seat: f"COURSE_SERVERS={base.format(seat=seat, token=token)}"
        for seat, token in room["seats"].items()
    }
    write_cards(output / "cards.html", lines)
    with start_browser_server(
        workers=workers or None,
        sessions=seats * sessions,
        port=port,
        timeout=180,
        host="0.0.0.0",
        token=room["token"],
        seats=room["seats"],
        sessions_per_seat=sessions,
    ) as server:
        print(f"{seats} seats with {sessions} browser sessions each; cards to print:", flush=True)
        print(f"  {output / 'cards.html'}")
        print(f"Seat {next(iter(lines))} types:\n  {next(iter(lines.values()))} make lab")
        print("Ctrl-C closes the room.", flush=True)
        with suppress(KeyboardInterrupt):
            # Also where a shell has started it in the background, which then ignores Ctrl-C.
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, signal.default_int_handler)
            watch(server)
    release_folder(output)
    print("\nThe room is closed; make room opens it again, with the same tokens.")


def check_memory(sessions: int) -> None:
    """`RoomError` where so many sessions need more memory than is free."""
    needed = (SERVER_MB + SESSION_MB * sessions) / 1e3
    free = psutil.virtual_memory().available / 1e9
    if needed > free:
        raise RoomError(
            f"{sessions} browser sessions need about {needed:.1f} GB and {free:.1f} are free: fewer"
            " SEATS, or fewer SESSIONS for each."
        )


def own_address() -> str:
    """The address under which the local network reaches this machine; loopback where there is no
    network."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe, suppress(OSError):
        # Sends nothing: the system only chooses from which of its addresses it would.
        probe.connect(("192.0.2.1", 9))
        return probe.getsockname()[0]
    return "127.0.0.1"


def read_room(folder: Path, seats: int) -> dict[str, Any]:
    """The tokens of a room: those in its folder, and new ones for the seats that have none yet.
    RunFileError where the file is not one of ours."""
    path = folder / "seats.json"
    room: dict[str, Any] = {"token": secrets.token_urlsafe(16), "seats": {}}
    if path.exists():
        try:
            room = json.loads(path.read_text())
            known = {str(seat): str(token) for seat, token in room["seats"].items()}
            room = {"token": str(room["token"]), "seats": known}
        except (ValueError, KeyError, AttributeError, TypeError):
            raise RunFileError(
                f"{path} cannot be read as the tokens of a room: delete it, and print new cards."
            ) from None
    for number in range(1, seats + 1):
        room["seats"].setdefault(f"{number:02d}", new_token())
    write_json(path, room)
    wanted = [f"{number:02d}" for number in range(1, seats + 1)]
    return {"token": room["token"], "seats": {seat: room["seats"][seat] for seat in wanted}}


def new_token() -> str:
    """Letters that can be typed from a card: 59 bits."""
    return "".join(secrets.choice(LETTERS) for _ in range(TOKEN_LETTERS))


def write_cards(path: Path, lines: dict[str, str]) -> None:
    """The page of cards, one for each seat; ``lines``: the variables that a seat sets."""
    template = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined).from_string(
        CARDS.read_text()
    )
    write_whole(path, template.render(lines=lines))


def watch(server: BrowserServer) -> None:
    """Show the seats whenever something has changed, until Ctrl-C. A server that was lost is
    started again."""
    console = Console()
    shown = ""
    while True:
        try:
            text = seats_table(server.stats())
        except BrowserServerError:
            text = "The browser server was lost, and is started again."
            with suppress(BrowserServerError):
                server.client().close()
        if text != shown:
            console.clear()  # on a terminal only
            print(text, flush=True)
            shown = text
        time.sleep(LOOK_SECONDS)


def seats_table(stats: dict[str, Any]) -> str:
    """Who is there, as plain text; ``stats`` as `BrowserServer.stats` returns it to the owner."""
    rows = []
    for name, seat in stats["seats"].items():
        seen = time.strftime("%d %b %H:%M", time.localtime(seat["seen"])) if seat["seen"] else "-"
        rows.append((name, seat["sessions"], seen, seat["said"] or "-"))
    there = sum(seat["opened"] > 0 for seat in stats["seats"].values())
    ready = sum(seat["said"].startswith("ready") for seat in stats["seats"].values())
    summary = (
        f"{there} of {len(rows)} seats were here, {ready} said that they are ready; "
        f"{stats['episodes']} episodes, {stats['infrastructure_errors']} lost"
    )
    return table(("seat", "sessions", "last seen", "make ready"), rows) + "\n" + summary


if __name__ == "__main__":
    sys.exit(run(main))
