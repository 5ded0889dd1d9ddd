"""ClassAds: ads, their expressions, matches of two ads, partial evaluation of expressions, and explanations of failed matches.

Anyone may write the texts of ads. Our own reader (`parsing`) reads them within limits (`limits`) into trees (`tree`). The
library of the HTCondor project (`engine`) evaluates only texts that are written anew from these trees; it never parses a
user's text.
"""
