"""The course site: what is on it, how its texts and notebooks become HTML, and how it is put
together.

`documents` says which texts are pages and where each lies, `markdown` and `notebook` make HTML of
them, `standalone` makes a page that needs no other file (`make course` writes such), `player` holds
the recorded episodes, `project` is what MkDocs is given for one language, and `build` calls it with
Material's theme, which adds navigation and search; meanwhile MkDocs calls `hook`.
`tools/make_site.py` is the command.
"""
