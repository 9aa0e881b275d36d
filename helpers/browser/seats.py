"""Who may use a server: the one who started it and, in a classroom, the seats of a room.

A seat is a name with a token of its own and a share of the sessions, so that no seat takes the
browsers of another. What a seat says of itself, and when it was seen, is for the teacher's table.
"""

import hmac
import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

MAX_SAID = 200  # characters of what a seat says of itself


@dataclass(frozen=True)
class Access:
    """The tokens of a server, as they travel to its process: one line of JSON on its stdin."""

    token: str
    seats: Mapping[str, str] = field(default_factory=dict)  # by name
    sessions_per_seat: int = 0

    def to_json(self) -> str:
        """One line."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, line: str) -> "Access":
        """Back from `to_json`."""
        return cls(**json.loads(line))


@dataclass
class Seat:
    """What a server knows of one seat."""

    limit: int | None = None  # sessions at a time; None: as many as there are
    sessions: int = 0
    opened: int = 0  # sessions since the server started
    seen: float | None = None  # when it last opened one, in seconds since 1970
    said: str = ""

    @property
    def is_full(self) -> bool:
        """Whether it has all the sessions that it may have."""
        return self.limit is not None and self.sessions >= self.limit

    def enter(self) -> None:
        """One more session."""
        self.sessions += 1
        self.opened += 1
        self.seen = time.time()

    def leave(self) -> None:
        """One session less."""
        self.sessions -= 1


class Seats:
    """The seats of a server, found by their tokens. The owner, whose name is empty, is one without
    a limit."""

    def __init__(self, access: Access) -> None:
        tokens = {**access.seats, "": access.token}
        self._tokens = {name: token.encode() for name, token in tokens.items()}
        self._seats = {name: Seat(access.sessions_per_seat) for name in access.seats}
        self._seats[""] = Seat()

    def name_of(self, token: bytes) -> str | None:
        """Whose token this is, None where it is nobody's. Every token is compared, in a time that
        tells nothing of it."""
        found = None
        for name, known in self._tokens.items():
            if hmac.compare_digest(token, known):
                found = name
        return found if token else None

    def __getitem__(self, name: str) -> Seat:
        return self._seats[name]

    def say(self, name: str, said: str) -> None:
        """Keep what a seat says of itself."""
        self[name].said = said[:MAX_SAID]

    def table(self) -> dict[str, dict[str, Any]]:
        """The fields of each seat, by name; empty where there is no room."""
        return {name: asdict(seat) for name, seat in self._seats.items() if name}
