"""The namespaces of JSDL, its extensions, and what we add."""

from typing import Final

JSDL: Final = "http://schemas.ggf.org/jsdl/2005/11/jsdl"
POSIX: Final = "http://schemas.ggf.org/jsdl/2005/11/jsdl-posix"
HPCP: Final = (
    "http://schemas.ggf.org/jsdl/2006/07/jsdl-hpcpa",
    "http://schemas.ggf.org/jsdl/2006/07/jsdl-hpcp",
)
SPMD: Final = "http://schemas.ogf.org/jsdl/2007/02/jsdl-spmd"
SWEEP: Final = "http://schemas.ogf.org/jsdl/2007/01/jsdl-sweep"
SWEEPS: Final = (SWEEP, "http://schemas.ogf.org/jsdl/2009/03/sweep")
"""The namespaces of sweeps: of the draft, which we write, and of the recommendation."""
FUNCTION: Final = "http://schemas.ogf.org/jsdl/2007/01/jsdl-sweep/functions"
FUNCTIONS: Final = (FUNCTION, "http://schemas.ogf.org/jsdl/2009/03/sweep/functions")
WMS: Final = "urn:wms:jsdl:1"
"""Our own: fields of descriptions and job preferences."""
