"""GLUE: what information systems say of computing elements, in GLUE 1.x and 2.0; between both, and to and from our ads.

`glue1` and `glue2` hold the records; `ad`, `classad`, `ldif`, `glue2_xml` and `arc_json` the forms they come and go in;
`versions` leads from one to the other, `offer` to `wms.site`. `quantity` says what the numbers mean that are none.
"""
