"""Pages that give orders: which policies obey them, and what helps.

In come policies and pages with orders in them (`helpers.browser.orders`); out come the shares of
episodes that obeyed, that solved, and that did both, without a defence and with each. Open `plan`
first: the attacks, and which of them a defence may have seen; then `experiment`.
"""
