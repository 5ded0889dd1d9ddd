"""What a pilot found its node not to do for: told with every request, so that it is not offered the like again."""

import hashlib

NOTHING_EVALUATED = "*"
"""Told by a pilot that can evaluate no expression at all."""


def wish(requirements: str, attributes: str = "") -> str:
    """Return the name of what a job requires, from the canonical texts of its requirements and of its own attributes."""
    return hashlib.sha256(f"{requirements}\n{attributes}".encode()).hexdigest()[:24]


def refuses(unfit: tuple[str, ...], requirements: str, attributes: str = "") -> bool:
    """Tell whether a pilot that told so much would give a job with such requirements back."""
    if not unfit or not requirements:
        return False
    return NOTHING_EVALUATED in unfit or wish(requirements, attributes) in unfit
