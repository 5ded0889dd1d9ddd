"""Discovery: finds computing elements through a hierarchy of index servers. Each is asked once, and no slow one delays others.

Pure: `address` (identity of servers), `server_answers` (content of an answer), `document` (its formats), `search` (which server is asked
next), `answer_cache` (cached answers), `admission` (whom an element admits). With I/O: `http` and `file` ask one server, `parallelism` bounds how
many are asked at a time, `discovery` combines all. After the InformationFinder of Elmroth and Tordsson's broker (2005), whose index servers
were NorduGrid's GIISes.
"""
