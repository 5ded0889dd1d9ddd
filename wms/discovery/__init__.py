"""Discovery: computing elements found through a hierarchy of index servers, each asked once, and none waited for by all.

Pure: `address` (what is one server), `told` (what a server tells), `document` (how it tells it), `walk` (who is asked next),
`memory` (what need not be asked), `admission` (whom an element lets in). With I/O: `http` and `file` ask one server, `lanes`
bounds how many are asked at a time, `discovery` puts it all together. After the InformationFinder of Elmroth and Tordsson's
broker (2005), whose index servers were NorduGrid's GIISes.
"""
