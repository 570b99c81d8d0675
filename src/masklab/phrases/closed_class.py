"""Words of the closed classes of English, which have no synonyms: WordNet has `a` as an ångström, `in` as an inch."""

DETERMINERS_AND_PRONOUNS = """
a an the this that these those each every either neither some any no none all both half such another other others what
whatever which whichever who whoever whom whose i me my mine myself we us our ours ourselves you your yours yourself
yourselves he him his himself she her hers herself it its itself they them their theirs themselves one ones oneself
someone somebody something anyone anybody anything everyone everybody everything nobody nothing
"""
PREPOSITIONS = """
about above across after against along amid among amongst around as at before behind below beneath beside besides
between beyond but by despite down during except for from in inside into like near of off on onto out outside over per
since than through throughout till to toward towards under underneath until unto up upon via with within without
"""
CONJUNCTIONS = """
and or nor so yet if unless because although though whereas while whether when whenever where wherever why how
"""
ADVERBS = "then there here not n't too very also just only even ever never again now once"
AUXILIARIES = """
am is are was were be been being 'm 're 's do does did doing done have has had having 've 'd can could may might must
shall should will would ca wo 'll ought
"""
NUMBERS = "two three four five six seven eight nine ten"
CLOSED = frozenset(
    " ".join([DETERMINERS_AND_PRONOUNS, PREPOSITIONS, CONJUNCTIONS, ADVERBS, AUXILIARIES, NUMBERS]).split()
)
