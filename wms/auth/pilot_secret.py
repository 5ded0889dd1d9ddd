"""One-time secrets of pilots: a pilot is sent with a secret, and exchanges it once for its token and its key.

The secret is HMAC-SHA256(secret of the services, pilot id), as the pilot's key is, under another name. So the services can verify a proof
of it, and encrypt the answer with it. Neither the gateway nor a reader of Kafka learns the secret, the token or the key. The database has
the secret's hash alone.
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
    """The one-time secret of one pilot. `exchange_id` names an exchange: a random text that the pilot chooses."""

    pilot_id: str
    secret: bytes

    def __repr__(self) -> str:
        return f"PilotSecret({self.pilot_id!r})"

    @classmethod
    def parse(cls, pilot_id: str, text: str) -> "PilotSecret":
        """Read the content of the file in which a pilot gets its secret. Raise Rejected if it is none."""
        try:
            secret = bytes.fromhex(text.strip())
        except ValueError:
            secret = b""
        if len(secret) != SECRET_BYTES:
            raise Rejected("NO_TOKEN", "the pilot's file has no one-time secret", "send a new pilot")
        return cls(pilot_id, secret)

    @property
    def text(self) -> str:
        """The content of the file in which the pilot gets its secret."""
        return f"{self.secret.hex()}\n"

    @property
    def digest(self) -> bytes:
        """The SHA-256 of the secret, which the database keeps."""
        return hashlib.sha256(self.secret).digest()

    def proof(self, exchange_id: str) -> str:
        """Return a proof that its maker has the secret. It is for this exchange alone."""
        return mac(begin(self.secret, b"proof", self.pilot_id.encode()), exchange_id.encode()).decode()

    def is_proof(self, proof: str, exchange_id: str) -> bool:
        """Return whether somebody who has the secret made this proof for this exchange."""
        return hmac.compare_digest(self.proof(exchange_id).encode(), proof.encode())

    def seal(self, exchange_id: str, text: str) -> str:
        """Return `text` encrypted (AES-GCM) for whoever has the secret and began this exchange."""
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        nonce = secrets.token_bytes(NONCE_BYTES)
        sealed = AESGCM(self._sealing_key(exchange_id)).encrypt(nonce, text.encode(), self.pilot_id.encode())
        return base64.b64encode(nonce + sealed).decode()

    def opened(self, exchange_id: str, sealed: str) -> str:
        """Return the text that `seal` encrypted. Raise Rejected (SEAL_BROKEN) if it was not sealed for this exchange of this pilot."""
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
