from tests.unit.jobdesc.descriptions import of
from wms.jobdesc import read_json
from wms.jobdesc.to_json import write_json


def test_descriptions_are_read_as_they_were() -> None:
    one, two = of(name="a"), of(arguments=("b", "é\n"))
    assert read_json(write_json([one]).encode()) == [one]
    assert read_json(write_json([one, two]).encode()) == [one, two]
    assert write_json([of()]) == '{\n  "executable": "/bin/true"\n}\n'
