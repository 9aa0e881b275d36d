"""The pictures in media/, one file for each kind; `tools/make_media.py` calls them by name.

Pictures are opaque, on a light card, so that they read on light and on dark backgrounds.
"""
