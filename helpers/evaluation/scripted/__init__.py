"""Scripted solutions: for each task in `SCRIPTS` an agent that does what its goal asks for.

A script reads only what a policy sees. Scripts are upper bounds for the results, witnesses in the
audit of rewards (`benchmarks.audit`) and the teachers of a warm-up (`helpers.learning.warm_up`).
Some are not perfect; the audit says how often each is paid. To add one, write it into the file of
its kind (`buttons`, `lists`, `fields`, `forms` and the other files) and name it here.
A script that raises on a page that it does not expect waits instead, and loses its turn.

`OUT_OF_REACH` says of the other tasks of a standard set why who reads text cannot do them.
"""

from helpers.episodes.play import Agent
from helpers.evaluation.agents import noop_on_error, text_match_agent
from helpers.evaluation.scripted import (
    buttons,
    cards,
    day,
    dragging,
    editor,
    fields,
    forms,
    games,
    inbox,
    links,
    lists,
    menu,
    posts,
    scrolling,
    sliders,
)
from helpers.evaluation.scripted.page import fill_fields, quoted

_SCRIPTS: dict[str, Agent] = {
    # Buttons, tabs and the like
    "click-test": text_match_agent,
    "click-button": text_match_agent,
    "unicode-test": text_match_agent,
    "click-test-2": buttons.buttons_in_order,
    "click-test-transfer": buttons.buttons_in_order,
    "click-button-sequence": buttons.buttons_in_order,
    "click-dialog": buttons.dialog,
    "click-dialog-2": buttons.dialog,
    "click-tab": buttons.tab,
    "click-collapsible": buttons.collapsible,
    "click-collapsible-nodelay": buttons.collapsible,
    "click-widget": buttons.widget,
    "focus-text": buttons.counted("textbox"),
    "focus-text-2": buttons.counted("textbox"),
    "odd-or-even": buttons.odd_or_even,
    "buy-ticket": buttons.ticket,
    "identify-shape": buttons.kind_of_drawing,
    # Links in a text
    "click-link": links.in_text,
    "click-tab-2": links.behind("link", first_is_open=True),
    "click-tab-2-easy": links.behind("link", first_is_open=True),
    "click-tab-2-medium": links.behind("link", first_is_open=True),
    "click-tab-2-hard": links.behind("link", first_is_open=True),
    "click-collapsible-2": links.behind("tab", first_is_open=False),
    "click-collapsible-2-nodelay": links.behind("tab", first_is_open=False),
    # Boxes, lists, menus and trees
    "click-option": lists.tick("radio"),
    "click-checkboxes": lists.tick("checkbox"),
    "click-checkboxes-large": lists.tick("checkbox"),
    "click-checkboxes-transfer": lists.tick("checkbox"),
    "click-checkboxes-soft": lists.tick_synonyms,
    "choose-list": lists.select_listed,
    "click-scroll-list": lists.select_listed,
    "click-menu": lists.menu_path,
    "click-menu-2": lists.menu_behind_button,
    "navigate-tree": lists.tree,
    # Text fields
    "enter-text": fill_fields(fields.word_of_goal),
    "enter-text-dynamic": fill_fields(fields.word_of_goal),
    "enter-text-2": fill_fields(fields.word_of_goal_in_case),
    "enter-password": fill_fields(fields.word_of_goal_twice),
    "login-user": fill_fields(quoted),
    "find-word": fill_fields(fields.word_of_text),
    "text-transform": fill_fields(fields.whole_text),
    "simple-arithmetic": fill_fields(fields.arithmetic),
    "simple-algebra": fill_fields(fields.algebra),
    "read-table": fill_fields(fields.cell_of_goal),
    "read-table-2": fill_fields(fields.cells_of_labels),
    # Messages and posts
    "email-inbox": inbox.inbox,
    "email-inbox-delete": inbox.inbox,
    "email-inbox-important": inbox.inbox,
    "email-inbox-noscroll": inbox.inbox,
    "email-inbox-reply": inbox.inbox,
    "email-inbox-star-reply": inbox.inbox,
    "email-inbox-forward": inbox.inbox,
    "email-inbox-forward-nl": inbox.inbox,
    "email-inbox-forward-nl-turk": inbox.inbox,
    "email-inbox-nl-turk": inbox.inbox,
    "social-media": posts.one_post,
    "social-media-all": posts.several_posts,
    "social-media-some": posts.several_posts,
    # Small searches
    "find-greatest": cards.greatest,
    "phone-book": cards.contact,
    "generate-number": cards.number_that_fits,
    "copy-paste": cards.copy,
    "copy-paste-2": cards.copy,
    "scroll-text": cards.last_word,
    # Games
    "tic-tac-toe": games.TicTacToe(),
    "count-shape": games.count_drawings,
    "grid-coordinate": games.middle_of_grid,
    # Forms of several steps
    "login-user-popup": forms.login_with_popup,
    "book-flight": forms.book_flight,
    "book-flight-nodelay": forms.book_flight,
    "form-sequence-2": forms.radio_then_text,
    "form-sequence-3": forms.drop_down_then_button,
    "multi-layouts": forms.movie_search,
    "multi-orderings": forms.movie_search,
    "search-engine": forms.search_engine,
    "guess-number": forms.guess_number,
    "use-spinner": forms.spinner,
    "use-autocomplete": forms.autocomplete,
    "use-autocomplete-nodelay": forms.autocomplete,
    "enter-date": forms.enter_date,
    "enter-time": forms.enter_time,
    "choose-date": forms.calendar,
    "choose-date-easy": forms.calendar,
    "choose-date-medium": forms.calendar,
    "choose-date-nodelay": forms.calendar,
    "order-food": menu.order,
    "daily-calendar": day.create_event,
    "stock-market": forms.buy_below,
    "use-colorwheel": fill_fields(fields.colour),
    "use-colorwheel-2": fill_fields(fields.colour),
    # With keys and the mouse: sliders, scrolling, dragging, styles
    "use-slider": sliders.alone,
    "use-slider-2": sliders.combination,
    "form-sequence": sliders.of_form,
    "scroll-text-2": scrolling.to_top_or_bottom,
    "sign-agreement": scrolling.agreement,
    "drag-box": dragging.box,
    "drag-items": dragging.to_place,
    "drag-items-grid": dragging.in_grid,
    "drag-sort-numbers": dragging.sort,
    "text-editor": editor.style,
}

SCRIPTS: dict[str, Agent] = {task: noop_on_error(script) for task, script in _SCRIPTS.items()}

_COLOUR = "colours are pixels: the tree says nothing of them"
_SHAPE = "what is drawn is pixels: the tree says nothing of it"
_NO_NUMBER = "the parts of the drawing have no number to act on, only the whole has"
_PLACE = "asks for a place in a drawing, and only the middle of the whole can be named"
_SELECTION = "the mouse would have to go from the beginning of a text to its end, not to its middle"
OUT_OF_REACH: dict[str, str] = {
    "click-color": _COLOUR,
    "click-shades": _COLOUR,
    "count-sides": _SHAPE,
    "visual-addition": _SHAPE,
    "ascending-numbers": _NO_NUMBER,
    "click-pie": _NO_NUMBER,
    "click-pie-nodelay": _NO_NUMBER,
    "click-shape": _NO_NUMBER,
    "drag-circle": _NO_NUMBER,
    "drag-cube": _NO_NUMBER,
    "drag-shapes": _NO_NUMBER,
    "drag-shapes-2": _NO_NUMBER,
    "drag-single-shape": _NO_NUMBER,
    "bisect-angle": _PLACE,
    "circle-center": _PLACE,
    "draw-circle": _PLACE,
    "draw-line": _PLACE,
    "find-midpoint": _PLACE,
    "hot-cold": _PLACE,
    "right-angle": _PLACE,
    "highlight-text": _SELECTION,
    "highlight-text-2": _SELECTION,
    "resize-textarea": "the corner to drag is no element of the tree",
    "number-checkboxes": "the digit to copy is a picture; all but a 1 take more than ten turns",
    "terminal": "takes its commands key by key, nearly always more keys than ten turns",
    "drag-items": "partly: an item that goes down would have to be let go below a middle",
    "drag-items-grid": "partly: as in drag-items, for items that go up or to the left",
    "grid-coordinate": f"{_NO_NUMBER}, and its middle is right on one page of 25",
    "count-shape": "partly: letters and digits are text; size, colour and kind of shape are pixels",
    "identify-shape": "partly: letters and digits are text, shapes are pixels",
}
"""Tasks of the 125 that ask for what is not in the text, or for what has no number, and why. They
are played and counted like all others."""
