"""The form of SCRAM verifiers. That servers take their passwords `test_roles.py` shows: each role logs in by one."""

from wms.db.scram import ITERATIONS, verifier


def test_a_verifier_names_its_iterations_and_its_salt() -> None:
    made = verifier("pencil", salt=bytes(range(16)))
    head, keys = made.split("$")[1:]
    assert head == f"{ITERATIONS}:AAECAwQFBgcICQoLDA0ODw=="
    assert len(keys.split(":")) == 2


def test_each_verifier_has_a_salt_of_its_own() -> None:
    assert verifier("one") != verifier("one")
