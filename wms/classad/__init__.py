"""ClassAds: ads, expressions over them, two-sided matches, what is left of an expression, and why one fails.

Texts are anyone's. They are read by a reader of our own (`parsing`), with limits (`limits`), into trees (`tree`); the
HTCondor project's library (`engine`) evaluates what is written anew from these trees, and never sees a stranger's text.
"""
