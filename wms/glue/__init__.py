"""GLUE: how information systems describe computing elements, in GLUE 1.x and 2.0, and conversions to and from our ads.

`glue1` and `glue2` hold the records. `ad`, `classad`, `ldif`, `glue2_xml` and `arc_json` read and write their forms.
`versions` converts between the versions, `offer` from and to `wms.site`. `quantity` interprets numbers that stand for
unknown or unlimited.
"""
