"""The command line: `wms submit`, `wms jobs`, `wms why`, and so on. Slow imports are made inside the commands, so that `wms` starts fast."""
