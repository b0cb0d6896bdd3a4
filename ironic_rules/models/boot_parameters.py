"""The file with kernel parameters in an ISO image: GRUB's language, always of the same size.

An image is made once. Each copy of it gets the parameters of a node by writing over this file: nothing else in the
image depends on its content. The parameters of the image itself precede those of the node.
"""

from __future__ import annotations

import re
from typing import NamedTuple

#: Path of the parameters in the image, by the names of Rock Ridge.
PATH = "boot/grub/parameters.cfg"
#: Variables of GRUB that the parameters set.
VARIABLES = ("of_image", "of_node")
#: Two sectors of the image.
SIZE = 4096
#: Characters that the kernel reads of a command line on x86-64, without the byte that ends it.
MAX_LENGTH = 2047
# Nothing that ends a quoted word in GRUB's language, or the line.
_ALLOWED = re.compile(r"[A-Za-z0-9_.,:;/?&%@+~=\[\] -]*")
_FILE = re.compile(r"# Kernel parameters of ironic-rules, version 1, (\w+)\nset of_image='([^'\n]*)'\n"
                   r"set of_node='[^'\n]*'\n#\.*\n", re.ASCII)


class BootParameters(NamedTuple):
    """The content of the file about the image.

    :ivar machine: architecture of the kernel, such as ``x86_64``
    :ivar of_image: kernel parameters that every node has, separated by spaces
    """

    machine: str
    of_image: str

    def content(self, of_node: str = "") -> bytes:
        """Return the file.

        :param of_node: further kernel parameters
        :raises ValueError: the parameters are too long, or have a character that is not allowed
        """
        length = len(self.of_image) + len(of_node) + 1
        if length > MAX_LENGTH:
            raise ValueError(f"the kernel parameters have {length} characters, and the kernel reads {MAX_LENGTH}")
        if not _ALLOWED.fullmatch(self.of_image + of_node):
            raise ValueError("the kernel parameters have characters that are not allowed in a boot script")
        text = (f"# Kernel parameters of ironic-rules, version 1, {self.machine}\nset of_image='{self.of_image}'\n"
                f"set of_node='{of_node}'\n#")
        return text.ljust(SIZE - 1, ".").encode("ascii") + b"\n"


def read(file: bytes) -> BootParameters | None:
    """Return the parameters in the file; None if it is no such file."""
    match = _FILE.fullmatch(file.decode("latin-1")) if len(file) == SIZE else None
    return BootParameters(match[1], match[2]) if match else None
