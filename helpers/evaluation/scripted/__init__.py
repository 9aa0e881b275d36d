"""Scripted solutions: for each task in `SCRIPTS` an agent that does what its goal asks for.

A script reads only what a policy sees. Scripts are upper bounds for the results, witnesses in the
audit of rewards (`benchmarks.audit`) and the teachers of a warm-up (`helpers.learning.warm_up`).
Some are not perfect; the audit says how often each is paid. To add one, write it into the file of
its kind (`buttons`, `lists`, `fields`, `forms`) and name it here.
"""

from helpers.episodes.play import Agent
from helpers.evaluation.agents import text_match_agent
from helpers.evaluation.scripted import buttons, fields, forms, lists
from helpers.evaluation.scripted.page import fill_fields, quoted

SCRIPTS: dict[str, Agent] = {
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
    # Boxes, lists, menus and trees
    "click-option": lists.tick("radio"),
    "click-checkboxes": lists.tick("checkbox"),
    "click-checkboxes-large": lists.tick("checkbox"),
    "click-checkboxes-transfer": lists.tick("checkbox"),
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
    # Forms of several steps
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
}
