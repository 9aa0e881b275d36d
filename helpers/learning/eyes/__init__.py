"""How a policy without eyes gets them, on a laptop: `pages` draws pages and keeps them as arrays,
`encoder` teaches a vision encoder to say what stands in each square of a page, in the words of the
language model, and `answers` teaches the language model to answer with a click. Open `encoder`
first.
"""
