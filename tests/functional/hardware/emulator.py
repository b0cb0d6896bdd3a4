"""``python -m tests.functional.hardware.emulator``: sushy-emulator with fast fake systems.

They change their power state within one second, instead of up to eleven. They also have BIOS settings and volumes,
which sushy-tools supports only for systems of libvirt: it has the resources, and these systems implement them. The rest
is that of ``sushy-emulator --fake``.
"""

from __future__ import annotations

import random

FACTORY = {"BootMode": "Uefi", "EmbeddedSata": "Raid", "NicBoot1": "NetworkBoot", "ProcTurboMode": "Enabled"}


def get_bios(self, identity):
    return self._get(identity).get("bios", FACTORY)


def set_bios(self, identity, attributes):
    self._update(identity, bios={**get_bios(self, identity), **attributes})


def reset_bios(self, identity):
    self._update(identity, bios=FACTORY)


def find_or_create_storage_volume(self, data):
    return data["Id"]


if __name__ == "__main__":
    random.randint = lambda low, high: low
    from sushy_tools.emulator.main import main
    from sushy_tools.emulator.resources.systems.fakedriver import FakeDriver

    for method in (get_bios, set_bios, reset_bios, find_or_create_storage_volume):
        setattr(FakeDriver, method.__name__, method)
    main()
