"""Lists of names in one text, as variables, settings and options have them."""


def split_names(text: str) -> tuple[str, ...]:
    """Names with commas and perhaps spaces between them, one by one: "a, b" -> ("a", "b").

    An empty place stays, as an empty name, so that whoever reads the names can refuse it.
    """
    return tuple(name.strip() for name in text.split(","))
