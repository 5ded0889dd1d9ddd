"""The references' own ads and expressions, and the value of a text over two ads."""

from pathlib import Path

from wms.classad.ad import Ad
from wms.classad.expression import Expression
from wms.classad.match import evaluate

DATA = Path(__file__).parents[2] / "data" / "classad"


def read(name: str) -> str:
    return (DATA / name).read_text()


def value(text: str, other: str = "[]", own: str = "[]") -> object:
    return evaluate(Expression.parse(text), Ad.parse(other), Ad.parse(own))


def nested() -> Expression:
    requirements = Ad.parse(read("egee-requirements.txt").replace("\n", " ")).expression("Requirements")
    assert requirements is not None
    return requirements
