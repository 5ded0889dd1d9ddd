"""Keys: private, made once, and refused where others may read them."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest

from tests.unit.auth.issuer import NOW, Issuer, code
from wms.auth.keys import KINDS, KeySet, generate_keys, load_key
from wms.auth.token import Verifier


def test_keys_are_private_stay_and_are_told_publicly(tmp_path: Path) -> None:
    generate_keys(tmp_path / "keys")
    before = {name: (tmp_path / "keys" / name).read_bytes() for name in (*KINDS, "jwks.json")}
    (tmp_path / "keys" / "pilots.pem").unlink()
    generate_keys(tmp_path / "keys")
    after = {name: (tmp_path / "keys" / name).read_bytes() for name in (*KINDS, "jwks.json")}
    assert {name for name in before if before[name] != after[name]} == {"pilots.pem", "jwks.json"}
    assert all((tmp_path / "keys" / name).stat().st_mode & 0o777 == 0o600 for name in KINDS)
    assert (tmp_path / "keys").stat().st_mode & 0o777 == 0o700
    assert {path.name for path in (tmp_path / "keys").iterdir()} == {*KINDS, "jwks.json", "orders.key"}
    assert b'"d"' not in after["jwks.json"]
    kinds = [key.wms_kinds for key in msgspec.json.decode(after["jwks.json"], type=KeySet).keys]
    assert kinds == [("user", "service"), ("pilot",), ("site",)]


def test_many_may_make_the_keys_at_once(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: generate_keys(tmp_path), range(8)))
    again = Issuer(tmp_path)
    again.verifier().verify(again.mint(), NOW)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o601])
def test_an_exposed_key_is_refused(tmp_path: Path, mode: int) -> None:
    generate_keys(tmp_path)
    (tmp_path / "issuer.pem").chmod(mode)
    assert code(lambda: load_key(tmp_path / "issuer.pem")) == "KEY_EXPOSED"


def test_what_is_no_key_is_refused(tmp_path: Path) -> None:
    (tmp_path / "issuer.pem").write_bytes(b"no key")
    (tmp_path / "issuer.pem").chmod(0o600)
    assert code(lambda: load_key(tmp_path / "issuer.pem")) == "KEY_UNREADABLE"
    assert code(lambda: load_key(tmp_path / "none.pem")) == "KEY_UNREADABLE"
    for content in (b"no keys", b" " * (1 << 20) + b"{}", b"[" * 100_000, b'{"keys": "\xff"}'):
        (tmp_path / "issuer.pem").write_bytes(content)
        assert code(lambda: Verifier.from_file(tmp_path / "issuer.pem")) == "KEYS_INVALID"


def test_a_key_does_not_show_itself(issuer: Issuer) -> None:
    assert "PRIVATE" not in repr(issuer.keys["issuer"])
    assert "0x" not in repr(issuer.keys["issuer"])
