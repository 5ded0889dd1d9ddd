"""The catalogue of submit commands."""

from wms.jobdesc.languages.condor_commands import CATALOGUE, entry_of, split_arguments, value_of
from wms.jobdesc.languages.condor_macros import whole


def test_commands_are_found_by_all_their_names() -> None:
    assert entry_of("requestcpus") == entry_of("request_cpus") == "request_cpus"
    assert entry_of("my.acctgroup") == "accounting_group"
    assert (entry_of("request_fpgas"), entry_of("ec2_ami_id"), entry_of("outdir")) == (
        "request_*",
        "ec2_*",
        None,
    )


def test_no_name_is_of_two_commands() -> None:
    names = [name for key, entry in CATALOGUE.items() for name in (key, *entry.names)]
    assert len(names) == len(set(names))
    assert all(entry.how or entry.fate == "kept" for entry in CATALOGUE.values())


def test_numbers_may_be_sums() -> None:
    assert [whole(each) for each in ("4", "4.0", "2 * 2", "Cpus", "1.5")] == [4, 4, 4, None, None]


def test_arguments_have_two_forms() -> None:
    assert split_arguments("a 'b c' \\\"d\\\"") == ["a", "'b", "c'", '"d"']
    assert split_arguments('"a \'b c\' ""d"""') == ["a", "b c", '"d"']
    assert split_arguments('a "b"') is None


def test_values_of_attributes_are_constants() -> None:
    assert [value_of(each) for each in ('"x"', "true", "7", "1.5", "Owner")] == ["x", True, 7, 1.5, None]
