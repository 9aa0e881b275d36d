"""All that stock BrowserGym tells of a page beside its text, for those who ask for it."""

import time
from typing import Any

Fields = dict[str, Any]

GREETING = (  # with which stock begins the chat of each episode
    "Hi! I am your UI assistant, I can perform web tasks for you. What can I help you with?"
)


def details_of(moment: Fields, properties: Fields, title: str, started: float) -> Fields:
    """The keys of stock's observation, ready for JSON, but for the DOM snapshot, the accessibility
    tree and the picture.

    ``moment``: goal, url, focused_bid, error and last_action. ``properties``: what BrowserGym's
    ``extract_dom_extra_properties`` says of each bid (visibility, bbox, clickable, set_of_marks).
    ``started``: when the episode did, in seconds since 1970."""
    goal = moment["goal"]
    return {
        "chat_messages": [
            {"role": "assistant", "timestamp": started, "message": GREETING},
            {"role": "user", "timestamp": started, "message": goal},
        ],
        "goal": goal,
        "goal_object": [{"type": "text", "text": goal}],
        "open_pages_urls": [moment["url"]],
        "open_pages_titles": [title],
        "active_page_index": [0],
        "url": moment["url"],
        "extra_element_properties": properties,
        "focused_element_bid": moment["focused_bid"],
        "last_action": moment["last_action"],
        "last_action_error": moment["error"],
        "elapsed_time": [time.time() - started],
    }
