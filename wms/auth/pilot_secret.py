"""One-time secrets of pilots: a pilot is sent with a secret, and exchanges it once for its token and its key.

The secret is derived from the services' secret and the pilot id by HMAC-SHA256, like the pilot's key, but from another text.
So the services can verify a proof of the secret, and encrypt the answer with it. Neither the gateway nor a reader of Kafka
learns the secret, the token or the key. The database has only the secret's hash.
"""

import base64
import hashlib
import hmac
import secrets
from typing import Final

import msgspec

from wms.auth.envelope import begin, mac
from wms.errors import Rejected

SECRET_BYTES: Final = 32
NONCE_BYTES: Final = 12


class PilotSecret(msgspec.Struct, frozen=True):
    """The one-time secret of one pilot: 32 bytes.

    The parameter `exchange_id` of the methods names one exchange of it: a random text that the pilot chooses.
    """

    pilot_id: str
    secret: bytes

    def __repr__(self) -> str:
        return f"PilotSecret({self.pilot_id!r})"

    @classmethod
    def parse(cls, pilot_id: str, text: str) -> "PilotSecret":
        """Read the content of the file with a pilot's secret: 32 bytes in hexadecimal digits.

        Raise Rejected (NO_TOKEN) if it is anything else.
        """
        try:
            secret = bytes.fromhex(text.strip())
        except ValueError:
            secret = b""
        if len(secret) != SECRET_BYTES:
            raise Rejected("NO_TOKEN", "the pilot's file has no one-time secret", "send a new pilot")
        return cls(pilot_id, secret)

    @property
    def text(self) -> str:
        """The content of the file in which the pilot gets its secret: hexadecimal digits and a line end."""
        return f"{self.secret.hex()}\n"

    @property
    def digest(self) -> bytes:
        """The SHA-256 hash of the secret. The database stores only the hash."""
        return hashlib.sha256(self.secret).digest()

    def proof(self, exchange_id: str) -> str:
        """Return a proof that the sender of an exchange request has the secret: an authentication code over pilot id and exchange id."""
        return mac(begin(self.secret, b"proof", self.pilot_id.encode()), exchange_id.encode()).decode()

    def is_proof(self, proof: str, exchange_id: str) -> bool:
        """Return whether `proof` is the result of `PilotSecret.proof` for this exchange, and so made with this secret."""
        return hmac.compare_digest(self.proof(exchange_id).encode(), proof.encode())

    def seal(self, exchange_id: str, text: str) -> str:
        """Return `text` encrypted (AES-GCM, in base64) with a key derived from the secret and this exchange id.

        Only somebody who has the secret can decrypt it, with `opened`.
        """
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        nonce = secrets.token_bytes(NONCE_BYTES)
        sealed = AESGCM(self._sealing_key(exchange_id)).encrypt(nonce, text.encode(), self.pilot_id.encode())
        return base64.b64encode(nonce + sealed).decode()

    def opened(self, exchange_id: str, sealed: str) -> str:
        """Return the text that `seal` encrypted. Raise Rejected (SEAL_BROKEN) if it was encrypted for another exchange or another pilot."""
        # Imported here: it takes long, and pilots without a secret do not need it.
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        try:
            content = base64.b64decode(sealed, validate=True)
            key, nonce, text = self._sealing_key(exchange_id), content[:NONCE_BYTES], content[NONCE_BYTES:]
            return AESGCM(key).decrypt(nonce, text, self.pilot_id.encode()).decode()
        except (InvalidTag, ValueError):
            raise Rejected("SEAL_BROKEN", "it was sealed for somebody else") from None

    def _sealing_key(self, exchange_id: str) -> bytes:
        return hmac.digest(self.secret, b"seal\0" + exchange_id.encode(), "sha256")
