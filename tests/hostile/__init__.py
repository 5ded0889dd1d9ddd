"""Attacks with valid credentials on a whole running system, beside which an innocent user's jobs must go on as usual.

What other tests show with the same reality is not repeated here:

==============================================================  ===============================================================
attack                                                          shown by
==============================================================  ===============================================================
a message that ends or blocks the process is set aside          contract/bus/test_fairness.py, services/runtime/test_watchdog.py
a slow statement goes to the dead letters                       tests/contract/bus/test_fairness.py
each compression bomb by its codec, memory in a process         tests/contract/bus/test_decompression.py
50 MB of expensive rehearsals                                   tests/system/test_expensive_user.py
forged, repeated and misdirected orders, counted by the agent   tests/services/job_agent/test_forged_orders.py
a pilot that accepts nothing; one that claims too many slots    tests/services/matcher/test_pilot_allowance.py
output of a job with a ticket for another question              tests/services/job_manager/test_reports.py
elements stored with values out of bounds                       tests/services/test_isolation.py
unused lists of parameters, number and bytes of dead letters    tests/db/test_retention.py
outputs of zeros and of very many files come out again          tests/unit/transfer/test_archive.py
hostile members of archives                                     tests/unit/transfer/test_archive.py
control sequences in stored texts do not reach the terminal     tests/unit/cli/test_printing.py
each limit of payloads, each hole of their containers           tests/services/job_agent/payload/test_limit_enforcement.py, test_container.py
every field of every message has a bound                        tests/unit/test_bounds.py
other users of the machine reach neither broker nor Postgres    tests/contract/embedded/test_other_users.py
a system killed whole; a broker lost whole                      tests/system/test_survival.py
==============================================================  ===============================================================
"""
