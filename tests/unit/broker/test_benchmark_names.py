"""One benchmark has many names, and what is no result is not taken for one."""

import pytest

from wms.broker.benchmark_names import advertised_benchmarks, benchmark_key, named_benchmarks
from wms.glue.glue1 import GlueHosts


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("specFP2000", "SF00"), ("SPECint_base2000", "si00"), ("nas-lu-c", "NAS_LU_C"), ("HEP-SPEC06", "HS06"),
    ],
)  # fmt: skip
def test_names_of_one_benchmark_are_equal(one: str, other: str) -> None:
    assert benchmark_key(one) == benchmark_key(other)


def test_other_benchmarks_are_others() -> None:
    assert len({benchmark_key(each) for each in ("nas-lu-c", "nas-lu-b", "SI00", "SF00", "HEPSPEC06")}) == 5


def test_glue_names_three_and_unknown_ones_are_absent() -> None:
    assert named_benchmarks(GlueHosts(si00=1200, hepspec06=9.5)) == {"specint2000": 1200.0, "hepspec06": 9.5}


def test_an_ad_may_tell_of_any_other() -> None:
    told = {
        "GlueHostBenchmarkSF00": 1500, "GlueHostBenchmarkNAS_LU_C": 450.0, "GlueHostBenchmarkX": float("nan"),
        "GlueHostBenchmarkY": True, "GlueHostBenchmarkZ": 0, "GlueHostBenchmarkV": "7", "GlueHostBenchmark": 3,
        "GlueHostBenchmarkW": 1e308, "Other": 3,
    }  # fmt: skip
    assert advertised_benchmarks(told) == {"specfp2000": 1500.0, "nasluc": 450.0}
