"""The command line: `wms submit`, `wms jobs`, `wms why`, ... Heavy modules are imported inside commands, to start fast."""
