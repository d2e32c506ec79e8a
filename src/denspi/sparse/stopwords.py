"""The English function words that carry no topic. Owns the list; never decides what is done with it.

Spelled as `ngrams.words` leaves them: casefolded, without accents, and cut at every sign, so that
"don't" is "don" + "t" and "it's" is "it" + "s". Changing the list changes every index: see `ngrams.SCHEME`.
"""

from __future__ import annotations

_ARTICLES_AND_POINTERS = "a an the this that these those such same other another own"
_PRONOUNS = """
    i me my mine myself we us our ours ourselves you your yours yourself yourselves he him his himself
    she her hers herself it its itself they them their theirs themselves one ones
"""
_QUESTION_WORDS = "who whom whose which what when where why how"
_VERBS = """
    am is are was were be been being have has had having do does did doing done
    can could will would shall should may might must ought
"""
_PREPOSITIONS = """
    of at by for with about against between into through during before after above below to from up down
    in out on off over under upon within without among per via
"""
_JOINING_WORDS = "and or but nor if because as until while than though although since unless whether"
_ADVERBS = """
    again further then once here there all any both each few more most some no not only so too very just
    now also ever yet else
"""
# What is left of "it's", "don't", "we'll", "they're", "I've", "he'd", "I'm", "isn't" once the sign is gone.
_CONTRACTION_PIECES = """
    s t ll re ve d m don isn aren wasn weren hasn haven hadn doesn didn won wouldn shouldn couldn mustn needn
    shan mightn ain
"""

STOP_WORDS: frozenset[str] = frozenset(
    " ".join(
        (
            _ARTICLES_AND_POINTERS,
            _PRONOUNS,
            _QUESTION_WORDS,
            _VERBS,
            _PREPOSITIONS,
            _JOINING_WORDS,
            _ADVERBS,
            _CONTRACTION_PIECES,
        )
    ).split()
)
