"""Certificates of the servers of a process: TLS 1.2 or later, with files that are read again when they change.

A server asks :class:`Certificates` for the context of each new connection. A pair that cannot be used, because it is
half-written, does not fit together or has expired, changes nothing: the one before stays, and the log has the reason.
"""

from __future__ import annotations

import logging
import os
import ssl
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from ironic_rules.exceptions import ConfigurationError

LOG = logging.getLogger(__name__)

#: Seconds between two looks at the files.
_LOOK_EVERY_S = 1.0
#: Verify codes of OpenSSL (X509_V_ERR_…) for a time outside the validity of a certificate.
_NOT_YET_VALID, _EXPIRED = 9, 10
#: Days that a certificate for trying the service is valid.
_TRIAL_DAYS = 30

#: Identity of the content of each file, found without reading it: inode, size and time of change; None: no file.
_Signature = tuple[tuple[int, int, int] | None, ...]


class Files(NamedTuple):
    """Paths of PEM files: the certificate with those of its chain, its key, and the authorities of clients.

    :ivar authorities: None: clients need no certificate
    """

    certificate: str
    key: str
    authorities: str | None = None


class Certificates:
    """The certificate of a server."""

    def __init__(self, files: Files, option: str) -> None:
        """Read the files.

        :param option: the one that has the certificate, for errors
        :raises ConfigurationError: the files cannot be used
        """
        self._files, self._option = files, option
        self._guard = threading.Lock()
        self._seen = self._signature()
        self._next = time.monotonic() + _LOOK_EVERY_S
        self.context = self._load()

    def refresh(self) -> None:
        """Read files again that have changed since the last look; at most one look per second."""
        now = time.monotonic()
        if now < self._next or not self._guard.acquire(blocking=False):
            return
        try:
            self._next = now + _LOOK_EVERY_S
            if (signature := self._signature()) == self._seen:
                return
            self._seen = signature
            self.context = self._load()
            LOG.info("%s: %s was read again, and is used for new connections.", self._option, self._files.certificate)
        except ConfigurationError as exc:
            LOG.error("%s The certificate from before stays in use.", exc)
        finally:
            self._guard.release()

    def _signature(self) -> _Signature:
        return tuple(_identity(path) for path in self._files if path is not None)

    def _load(self) -> ssl.SSLContext:
        for path in filter(None, self._files):
            self._require(path)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.options |= ssl.OP_NO_RENEGOTIATION
        certificate, key, authorities = self._files
        try:
            context.load_cert_chain(certificate, key, _no_password)
        except _EncryptedKey:
            raise self._error(f"{key} is encrypted: set a key without a passphrase") from None
        except (ssl.SSLError, ValueError) as exc:
            raise self._error(f"{_reason(exc, certificate, key)}") from exc
        try:
            _try(context, certificate)
        except ssl.SSLCertVerificationError as exc:
            if exc.verify_code in (_NOT_YET_VALID, _EXPIRED):
                raise self._error(f"{certificate}: {exc.verify_message}") from exc
            LOG.warning("%s: clients may refuse %s: %s", self._option, certificate, exc.verify_message)
        except ssl.SSLError as exc:
            raise self._error(f"{certificate} cannot be used: {exc.reason or exc}") from exc
        if authorities is not None:
            try:
                context.load_verify_locations(authorities)
            except (ssl.SSLError, ValueError) as exc:
                raise self._error(f"{authorities} has no certificate in PEM form") from exc
            context.verify_mode = ssl.CERT_REQUIRED
        return context

    def _require(self, path: str) -> None:
        try:
            is_empty = not Path(path).read_bytes()
        except OSError as exc:
            raise self._error(f"{path} cannot be read: {exc.strerror}") from exc
        if is_empty:
            raise self._error(f"{path} is empty")

    def _error(self, text: str) -> ConfigurationError:
        return ConfigurationError(f"{self._option}: {text}.")


class _EncryptedKey(Exception):
    """OpenSSL wants to know a passphrase. Without this, it would ask on the terminal."""


def _no_password() -> str:
    raise _EncryptedKey


def _identity(path: str) -> tuple[int, int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


def _reason(error: ssl.SSLError | ValueError, certificate: str, key: str) -> str:
    reason = getattr(error, "reason", None) or str(error)
    if reason == "KEY_VALUES_MISMATCH":
        return f"{key} is not the key of {certificate}"
    if "PEM" in str(error) or reason == "NO_START_LINE":
        return f"{certificate} or {key} is not complete PEM"
    return f"{certificate} and {key} cannot be used: {reason}"


def _try(context: ssl.SSLContext, certificate: str) -> None:
    """Connect to a server with the context, in memory, as a client that trusts this certificate."""
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname = False
    client.load_verify_locations(certificate)
    client.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = client.wrap_bio(to_client, to_server), context.wrap_bio(to_server, to_client, server_side=True)
    waiting: list[Callable[[], None]] = [end.do_handshake for end in ends]
    while waiting:
        for handshake in list(waiting):
            try:
                handshake()
            except ssl.SSLWantReadError:
                continue
            waiting.remove(handshake)


def make_trial_pair(folder: Path, names: list[str]) -> Files:
    """Return a self-signed certificate for trying the service, made by ``openssl`` unless the folder has a valid one.

    :param names: host names and addresses of the service
    :raises ConfigurationError: there is no such program, or it fails
    """
    files = Files(str(folder / "trial-certificate.pem"), str(folder / "trial-key.pem"))
    try:
        Certificates(files, "--tls")
        return files
    except ConfigurationError:
        pass  # there is none, or it has expired
    kinds = ",".join(f"{'IP' if name.replace('.', '').isdigit() or ':' in name else 'DNS'}:{name}" for name in names)
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
               "-days", str(_TRIAL_DAYS), "-subj", "/CN=ironic-rules trial", "-addext", f"subjectAltName={kinds}",
               "-keyout", files.key, "-out", files.certificate]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, umask=0o077)
    except FileNotFoundError:
        raise ConfigurationError("--tls needs the program openssl: install the package openssl, or set "
                                 "[api]ssl_cert_file and ssl_key_file.") from None
    except subprocess.CalledProcessError as exc:
        raise ConfigurationError(f"--tls: openssl cannot make a certificate: {exc.stderr.strip()}") from exc
    return files
