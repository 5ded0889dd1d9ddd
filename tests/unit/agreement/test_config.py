"""What the agreement service may be told."""

from typing import Any

import msgspec
import pytest

from services.agreement.config import Config

LEAST: dict[str, Any] = {"auth": {"jwks": "/keys/jwks.json"}}


def test_without_elements_nothing_is_reserved() -> None:
    assert msgspec.convert(LEAST, Config).elements == ()


@pytest.mark.parametrize(
    ("element", "fault"),
    [
        ({"kind": "script", "cpus": 4}, "whole path"),
        ({"kind": "script", "cpus": 4, "script": {"program": "decide"}}, "whole path"),
        ({"kind": "script", "script": {"program": "/opt/decide"}}, "needs `cpus`"),
        ({"kind": "slurm", "slurm": {"prefix": "a b"}}, "prefix"),
        ({"kind": "slurm", "slurm": {"users": []}}, "users"),
        ({"kind": "maui"}, "kind"),
        ({"template": {"max_cpus": 0}}, "max_cpus"),
        ({"template": {"color": "red"}}, "color"),
    ],
)
def test_faulty_elements_are_refused_by_their_keys(element: dict[str, Any], fault: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=fault):
        msgspec.convert(LEAST | {"elements": [{"ce": "main", **element}]}, Config)


def test_an_element_is_told_once() -> None:
    with pytest.raises(msgspec.ValidationError, match="one name"):
        msgspec.convert(LEAST | {"elements": [{"ce": "main"}, {"ce": "main"}]}, Config)
