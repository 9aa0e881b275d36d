"""How many clients share a server that was started without a number."""

from dataclasses import replace

import pytest

from helpers.browser import launcher
from helpers.browser.launcher import DEFAULT_SESSIONS, default_sessions
from helpers.learning.run import open_browsers
from helpers.settings.profiles import get_profile


@pytest.mark.parametrize(
    ("asked", "sessions"),
    [
        ("", DEFAULT_SESSIONS),
        ("8", DEFAULT_SESSIONS),
        ("128", 128),
        ("many", DEFAULT_SESSIONS),
    ],
)
def test_a_server_has_as_many_sessions_as_are_asked_for(monkeypatch, asked, sessions):
    monkeypatch.setenv("COURSE_CLIENTS", asked)
    assert default_sessions() == sessions


@pytest.fixture
def few_by_default(monkeypatch):
    """A server has one session by default, so three clients are more than that."""
    monkeypatch.setattr(launcher, "DEFAULT_SESSIONS", 1)


def assert_each_has_a_page(clients):
    pages = [client.reset("click-test", seed) for seed, client in enumerate(clients)]
    assert [page.seed for page in pages] == list(range(len(clients)))


def test_more_clients_than_a_server_has_by_default_get_a_larger_one(few_by_default, monkeypatch):
    monkeypatch.setenv("COURSE_CLIENTS", "3")
    with launcher.start_browser_server(workers=1, timeout=120) as server:
        assert_each_has_a_page(server.clients(3))


def test_a_run_opens_a_server_for_its_own_clients(few_by_default, monkeypatch):
    monkeypatch.delenv("COURSE_CLIENTS", raising=False)
    profile = replace(get_profile(), clients=3, workers=1)
    with open_browsers(profile) as clients:
        assert_each_has_a_page(clients)
