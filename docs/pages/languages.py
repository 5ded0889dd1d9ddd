"""`docs/guide/languages/`: for each language every element of its manual, and what its reader does with it."""

from docs.pages.structs import head, row
from wms.jobdesc.languages.catalogue import LANGUAGES
from wms.jobdesc.languages.translation import Language
from wms.jobdesc.loss_report import Fate

WORDS: dict[Fate, str] = {
    "kept": "carried out",
    "translated": "carried out",
    "omitted": "left out and named",
    "impossible": "refused",
}
"""What the guide calls the fates."""
LEAD = """# {title}: every element

What [`wms submit` and `wms convert`](../languages.md) do with each element. *Carried out* is its meaning in its own language. *Left out* is what
cannot change what the job computes, reads, writes or needs. *Refused* documents are taken with `--lenient`, without the element.
"""


def pages() -> dict[str, str]:
    """Return the pages of all languages that tell their elements, by their paths below `docs/`."""
    return {f"guide/languages/{each.name}.md": _page(each) for each in LANGUAGES if each.elements}


def _page(language: Language) -> str:
    rows = [
        row(f"`{name}`", WORDS[each.fate], each.sentence or "in the same words")
        for name, each in language.elements.items()
    ]
    lead = LEAD.format(title=language.title[:1].upper() + language.title[1:])
    return "\n".join([lead, *head("Element", "", "How, or why"), *rows]) + "\n"
