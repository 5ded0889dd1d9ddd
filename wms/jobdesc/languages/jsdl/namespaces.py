"""The XML namespaces of JSDL, of its standard extensions, and of this system's own extension."""

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
"""The two namespaces of parameter sweeps: the draft standard's, which is used for writing, and the recommendation's."""
FUNCTION: Final = "http://schemas.ogf.org/jsdl/2007/01/jsdl-sweep/functions"
FUNCTIONS: Final = (FUNCTION, "http://schemas.ogf.org/jsdl/2009/03/sweep/functions")
WMS: Final = "urn:wms:jsdl:1"
"""This system's own namespace, for fields of descriptions and job preferences."""
