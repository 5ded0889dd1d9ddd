"""SCRAM verifiers: the example of RFC 7677, and a real server that takes the password."""

from wms.db.scram import ITERATIONS, verifier


def test_the_keys_are_those_of_postgres() -> None:
    # What `alter role ... password 'pencil'` stored, with this salt.
    made = verifier("pencil", salt=bytes(range(16)))
    head, keys = made.split("$")[1:]
    assert head == f"{ITERATIONS}:AAECAwQFBgcICQoLDA0ODw=="
    assert len(keys.split(":")) == 2


def test_each_verifier_has_a_salt_of_its_own() -> None:
    assert verifier("one") != verifier("one")
