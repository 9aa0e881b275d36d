"""Elements of a page and actions on it, for tests of what an action does in a real browser."""

from helpers.browser.actions import format_action


def first(seen, *roles):
    """The first element with one of the roles."""
    return next(e for e in seen.elements if e.role in roles)


def by_bid(seen, bid):
    """The element with a number."""
    return next(e for e in seen.elements if e.bid == bid)


def do(env, name, *args):
    """Take an action that has to work; returns what is seen then."""
    action = format_action(name, *args)
    seen = env.step(action)
    assert (seen.error, seen.last_action_error, seen.infrastructure_error) == ("", False, ""), (
        action
    )
    return seen
