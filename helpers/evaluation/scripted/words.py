"""Words of the same meaning: the English that a script has to know where a goal describes."""

_GROUPS = """
big large huge enormous gigantic
small tiny little mini petite
red scarlet crimson vermillion
happy cheerful joyful gleeful delighted
sad unhappy sorrowful miserable tragic
angry mad furious irritated
evil wicked immoral sinful corrupt depraved
wrong incorrect mistaken erroneous
real genuine actual
strange odd peculiar unusual weird
stop cease halt end finish
scared terrified panicked fearful frightened afraid
quiet calm peaceful serene mild
old aged archaic
love like adore favor
kill murder assassinate
keep retain preserve sustain maintain
hide conceal camouflage
hate despise loathe detest dislike
funny humorous amusing comical laughable
fat fleshy plump chubby
stupid dumb dull unwise
delicious savory delectable appetizing
cut slice carve chop
brave courageous fearless
begin start initiate launch
answer reply response
television televisions tv tvs
house houses home homes
fire fires flame flames
pig pork swine
rabbit rabbits bunny bunnies
car cars automobile automobiles vehicle vehicles
"""
_GROUP_OF = {
    word: group for group, words in enumerate(_GROUPS.split("\n")) for word in words.split()
}


def same_meaning(word: str, other: str) -> bool:
    """Whether two words mean the same, in any case; each word means the same as itself."""
    word, other = word.lower(), other.lower()
    return word == other or (word in _GROUP_OF and _GROUP_OF[word] == _GROUP_OF.get(other, -1))
