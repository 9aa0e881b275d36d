"""How a policy without eyes gets them, on a laptop: `pages` draws pages and keeps them as arrays,
`encoder` teaches a vision encoder to say what stands in each square of a page, in the words of the
language model, `answers` teaches the language model where to look for what is asked and to answer
with a click, and in `practice` the pages pay. Open `encoder` first.
"""
