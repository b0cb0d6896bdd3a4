"""Certificate authorities of tests, and what they sign."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec


class Pair(NamedTuple):
    """PEM files of a certificate and its key."""

    certificate: Path
    key: Path


class Authority:
    """Signs certificates for 127.0.0.1 and localhost."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        self.certificate = folder / f"{name}.pem"
        made = self._builder(self._subject, self._key, 10).add_extension(
            x509.BasicConstraints(ca=True, path_length=0), critical=True).sign(self._key, hashes.SHA256())
        self.certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))

    def sign(self, name: str, days: int = 5, password: bytes | None = None) -> Pair:
        """Return a new certificate; with negative ``days`` it has expired."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        made = self._builder(x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)]), key, days).add_extension(
            x509.SubjectAlternativeName(names), critical=False).sign(self._key, hashes.SHA256())
        pair = Pair(self._folder / f"{name}.pem", self._folder / f"{name}.key")
        pair.certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
        encryption = (serialization.BestAvailableEncryption(password) if password
                      else serialization.NoEncryption())
        pair.key.write_bytes(key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption))
        return pair

    def context(self, pair: Pair | None = None, version: ssl.TLSVersion | None = None) -> ssl.SSLContext:
        """Return what a client that trusts this authority connects with.

        :param pair: the client's own certificate
        :param version: the only one that it speaks
        """
        context = ssl.create_default_context(cafile=str(self.certificate))
        if pair is not None:
            context.load_cert_chain(*pair)
        if version is not None:
            context.minimum_version = context.maximum_version = version
        return context

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, days: int) -> x509.CertificateBuilder:
        end = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=days)
        return x509.CertificateBuilder(
            self._subject, subject, key.public_key(), x509.random_serial_number(),
            min(end, datetime.datetime.now(datetime.UTC)) - datetime.timedelta(days=1), end)
