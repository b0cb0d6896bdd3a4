import base64
import hashlib
import hmac
import time


def is_genuine(secret, headers, content):
    """Return whether a message, with its headers in lower case, is from the service, and not an old one sent again."""
    identity, timestamp = headers["webhook-id"], headers["webhook-timestamp"]
    key = base64.b64decode(secret.removeprefix("whsec_"))
    digest = hmac.new(key, f"{identity}.{timestamp}.".encode() + content, hashlib.sha256).digest()
    expected = "v1," + base64.b64encode(digest).decode()
    is_signed = any(hmac.compare_digest(expected, given) for given in headers["webhook-signature"].split(" "))
    return is_signed and abs(time.time() - int(timestamp)) < 300
