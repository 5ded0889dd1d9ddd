"""The sources of a configuration, and its faults, told at the start."""

import msgspec
import pytest

from services.advertiser.config import Config
from services.advertiser.sources import sources
from wms.errors import Rejected


def test_faults_of_the_configuration_are_told_at_the_start():
    def config(**said: object) -> Config:
        table = {"advertising": {"token_file": "t"}, **said}
        return msgspec.convert(table, Config)

    for fault in (
        {"files": [{"site": "s", "path": "elements.txt"}]},
        {"arc": [{"site": "s", "url": "http://ce.example.org/arex", "token_file": "t"}]},
        {"arc": [{"site": "s", "url": "https://ce.example.org/arex"}]},
        {"slurm": [{"site": "s", "requirements": "other.A &&"}]},
        {"pbs": [{"site": "s", "requirements": "other.A &&"}]},
        {"lsf": [{"site": "s", "rank": "other.A &&"}]},
        {"elements": [{"site": "s", "rank": "1 +"}]},
    ):
        with pytest.raises(Rejected):
            list(sources(config(**fault)))
    named = config(elements=[{"site": "s"}], slurm=[{"site": "s"}], files=[{"site": "s", "path": "a.xml"}])
    assert [each.name for each in sources(named)] == ["machine", "slurm-0", "file-0"]
    assert [each.period_seconds for each in sources(named)] == [60.0, 300.0, 300.0]
