"""Certificates of a testbed: an authority of its own, hosts, users, and RFC 3820 proxies of users."""

import datetime as dt
import secrets
from collections.abc import Sequence
from ipaddress import ip_address
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from deploy.testbed.daemons import environment, run

LIFETIME = dt.timedelta(days=30)
PROXY_LIFETIME = dt.timedelta(days=7)
PROXY_INFO = x509.UnrecognizedExtension(
    x509.ObjectIdentifier("1.3.6.1.5.5.7.1.14"),
    # ProxyCertInfo: a policy of the language "inherit all" (1.3.6.1.5.5.7.21.1).
    bytes.fromhex("300c300a06082b06010505071501"),
)


class Credential(NamedTuple):
    """A certificate with its key."""

    certificate: x509.Certificate
    key: rsa.RSAPrivateKey

    @property
    def pem(self) -> bytes:
        """The certificate as PEM."""
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    @property
    def key_pem(self) -> bytes:
        """The key as PEM, unencrypted."""
        return self.key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )

    @property
    def subject(self) -> str:
        """The distinguished name as the grid writes it: /O=.../CN=..."""
        short = {NameOID.ORGANIZATION_NAME: "O", NameOID.COMMON_NAME: "CN"}
        return "".join(f"/{short[each.oid]}={each.value!s}" for each in self.certificate.subject)


class Authority:
    """A certificate authority that nobody else trusts."""

    def __init__(self) -> None:
        # Its own name each time: trust by name in a directory that others use too must not be mistaken.
        self._organisation = f"wms testbed {secrets.token_hex(4)}"
        key = _key()
        name = self._name("authority")
        builder = _builder(name, name, key, LIFETIME)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        builder = builder.add_extension(_usage(signs=True), critical=True)
        self.credential = Credential(builder.sign(key, hashes.SHA256()), key)

    def host(self, name: str) -> Credential:
        """Return a certificate for a server, by its name or its IP address."""
        names = x509.SubjectAlternativeName([_name_of_host(name)])
        uses = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        return self._issue(name, [names, x509.ExtendedKeyUsage(uses)])

    def user(self, name: str) -> Credential:
        """Return a certificate for a person."""
        return self._issue(name, [x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH])])

    def trust(self, directory: Path) -> list[Path]:
        """Write the authority into a directory as OpenSSL and the grid look for it; return the files."""
        directory.mkdir(parents=True, exist_ok=True)
        plain = directory / "authority.pem"
        plain.write_bytes(self.credential.pem)
        digest = run(
            ["openssl", "x509", "-noout", "-hash", "-in", str(plain)], environment(directory)
        ).strip()
        policy = directory / f"{digest}.signing_policy"
        policy.write_text(
            f"access_id_CA X509 '{self.credential.subject}'\npos_rights globus CA:sign\n"
            f"cond_subjects globus '\"/O={self._organisation}/*\"'\n"
        )
        hashed = directory / f"{digest}.0"
        hashed.write_bytes(self.credential.pem)
        return [hashed, policy]

    def _name(self, common: str) -> x509.Name:
        return x509.Name(
            [
                x509.NameAttribute(NameOID.ORGANIZATION_NAME, self._organisation),
                x509.NameAttribute(NameOID.COMMON_NAME, common),
            ]
        )

    def _issue(self, common: str, extensions: Sequence[x509.ExtensionType]) -> Credential:
        key = _key()
        builder = _builder(self._name(common), self.credential.certificate.subject, key, LIFETIME)
        builder = builder.add_extension(_usage(signs=False), critical=True)
        for extension in extensions:
            builder = builder.add_extension(extension, critical=False)
        return Credential(builder.sign(self.credential.key, hashes.SHA256()), key)


def proxy(user: Credential) -> bytes:
    """Return a proxy of a user as one PEM file: proxy certificate, its key, the user's certificate."""
    key, serial = _key(), secrets.randbits(31)
    named = x509.NameAttribute(NameOID.COMMON_NAME, str(serial))
    subject = x509.Name([*user.certificate.subject, named])
    builder = _builder(subject, user.certificate.subject, key, PROXY_LIFETIME)
    builder = builder.add_extension(_usage(signs=False), critical=True)
    builder = builder.add_extension(PROXY_INFO, critical=True)
    made = Credential(builder.sign(user.key, hashes.SHA256()), key)
    return made.pem + made.key_pem + user.pem


def _name_of_host(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, 2048)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: rsa.RSAPrivateKey, lifetime: dt.timedelta
) -> x509.CertificateBuilder:
    # Valid since yesterday: a clock that lags must not refuse what was made a second ago.
    now = dt.datetime.now(dt.UTC)  # noqa: TID251 - the testbed stands apart from the system and its clock
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + lifetime)
    )


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs,
        content_commitment=False,
        key_encipherment=not signs,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs,
        crl_sign=signs,
        encipher_only=False,
        decipher_only=False,
    )
