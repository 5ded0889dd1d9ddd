"""The shepherd in this process: what an order that fails does to it."""

import json
import socket

from services.job_agent.payload.shepherd import Shepherd


def test_a_stager_whose_socket_is_lost_is_one_orders_fault() -> None:
    agent, ours = socket.socketpair()
    stagers, sent = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with agent, ours, stagers, sent:
        sent.send(b".")  # the kernel drops a descriptor if its receiver can have no more
        Shepherd(agent, 1 << 60, stagers, "")._spawn({"id": 1, "argv": ["stager"], "is_stager": True})
        told = json.loads(ours.recv(1_000))
    assert (told["is"], told["fault"]) == ("failed_to_start", "node")
    assert "Too many open files" in told["error"]
