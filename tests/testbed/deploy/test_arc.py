"""The ARC element of the testbed knows its users, by proxy and by token, and nobody else."""

import http.client
import ssl
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from deploy.testbed.arc import TRUSTED
from tests.middleware import Sites

pytestmark = pytest.mark.testbed


def ask(testbed: Sites, path: str, *, proxy: bool = False, token: str = "") -> tuple[int, str]:
    arc = testbed.told["arc"]
    context = ssl.create_default_context(cafile=arc["authority"])
    if proxy:
        context.load_cert_chain(arc["proxy"])
    connection = http.client.HTTPSConnection(urlsplit(arc["url"]).netloc, context=context, timeout=20)
    headers = {"Accept": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
    connection.request("GET", urlsplit(arc["url"]).path + path, headers=headers)
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


def test_it_tells_of_its_queues(testbed: Sites) -> None:
    status, body = ask(testbed, "/rest/1.0/info", proxy=True)
    assert status == 200
    assert all(f'"{queue}"' in body for queue in testbed.told["arc"]["queues"])


def test_it_believes_tokens_of_its_issuer(testbed: Sites) -> None:
    token = Path(testbed.told["arc"]["token"]).read_text()
    assert ask(testbed, "/rest/1.0/jobs", token=token)[0] == 200
    assert ask(testbed, "/rest/1.0/jobs", token=token[:-8] + "AAAAAAAA")[0] == 403


def test_it_believes_nobody_without_either(testbed: Sites) -> None:
    assert ask(testbed, "/rest/1.0/jobs")[0] == 403


def test_its_authority_is_trusted_as_long_as_it_is_up(testbed: Sites) -> None:
    (place,) = {
        link.resolve().parent for link in TRUSTED.iterdir() if link.resolve().is_relative_to(testbed.root)
    }
    assert place == Path(testbed.told["arc"]["authority"]).parent
