import pytest

from wms.jobdesc.languages.jsdl.file_systems import FileSystems, UnknownFileSystem


def test_paths_are_seen_from_the_directory_of_the_job() -> None:
    systems = FileSystems({"DATA": "/data", "disk": ""})
    assert systems.path(None, "a") == systems.path("WORKINGDIR", "a") == systems.path("disk", "a") == "a"
    assert systems.path("ROOT", "bin/x") == "/bin/x"
    assert systems.path("SCRATCH", "a") == "a"
    assert FileSystems({"SCRATCH": "/s"}).path("SCRATCH", "a") == "/s/a"
    assert systems.path("DATA", "/a/b") == "/data/a/b"


@pytest.mark.parametrize("name", ["HOME", "nowhere"])
def test_an_unknown_place_is_refused(name: str) -> None:
    with pytest.raises(UnknownFileSystem, match=name):
        FileSystems({"HOME": ""}).path(name, "a")
