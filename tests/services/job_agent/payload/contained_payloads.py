"""Payloads in containers, as tests of command lines make them."""

from pathlib import Path

from services.job_agent.payload.image_runtime import ContainedPayload
from services.job_agent.payload.shepherd_messages import SpawnOrder


def payload_of(directory: Path, image: str, **environment: str) -> ContainedPayload:
    """Return a payload with the program `prog -x`, of which nothing exists but the attempt's directory."""
    order = SpawnOrder(
        argv=("prog", "-x"), cwd="/j/work", env=environment, stdout="", stderr="", scratch="/j/tmp"
    )
    return ContainedPayload(order=order, image=image, directory=directory)
