from wms.jobdesc.languages.jsdl import namespaces


def test_each_namespace_is_written_as_it_is_read() -> None:
    assert namespaces.SWEEP in namespaces.SWEEPS
    assert namespaces.FUNCTION in namespaces.FUNCTIONS
    everything = [
        namespaces.JSDL,
        namespaces.POSIX,
        namespaces.SPMD,
        namespaces.WMS,
        *namespaces.HPCP,
        *namespaces.SWEEPS,
    ]
    assert len(set(everything)) == len(everything)
