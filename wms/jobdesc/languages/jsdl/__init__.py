"""JSDL 1.0 with extensions for POSIX applications, the HPC profile, SPMD and parameter sweeps: reader and writer.

The schemas are the OGF's: GFD-R.136 (JSDL and POSIX), GFD-R-P.111 (HPC profile), GFD-R.115 (SPMD), GFD-R-P.149 (sweeps, in
both its namespaces). Fields of a description that JSDL cannot express are put into an extension element in our own namespace.
"""

from wms.jobdesc.languages.jsdl.definition import looks_like_jsdl, read_jsdl
from wms.jobdesc.languages.jsdl.elements import ELEMENTS
from wms.jobdesc.languages.jsdl.writer import write_jsdl

__all__ = ["ELEMENTS", "looks_like_jsdl", "read_jsdl", "write_jsdl"]
