"""ClassAds: ads, their expressions, two-sided matches, partial evaluation of expressions, and explanations of failed matches.

Anyone may write the texts. Our own reader (`parsing`) reads them within limits (`limits`) into trees (`tree`). The HTCondor
project's library (`engine`) evaluates only texts that are written anew from these trees; it never parses a user's text.
"""
