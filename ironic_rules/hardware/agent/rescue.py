"""``agent`` rescue: the ramdisk with ironic-python-agent is the rescue system, with the password of the request."""

from __future__ import annotations

from oslo_utils import secretutils

from ironic_rules.exceptions import IronicRulesError
from ironic_rules.hardware.agent import booting, in_band, silence
from ironic_rules.hardware.base import RescueInterface
from ironic_rules.models import states
from ironic_rules.models.task import Task

#: Of the password's hash, as in /etc/shadow.
_SALT = "SHA-512"


class AgentRescue(RescueInterface):
    """Boots the ramdisk, and lets its agent set the password of the user ``rescue``; only the hash is sent."""

    def validate(self, task: Task) -> None:
        """Check that the ramdisk can be booted.

        :raises InvalidParameterValue: the boot interface cannot, and ``[inspector]require_managed_boot`` is true
        """
        booting.parameters(self, task)

    def rescue(self, task: Task) -> str:
        in_band.forget(task)
        booting.boot(self, task)
        return states.RESCUEWAIT

    @silence.tolerated
    def continue_rescue(self, task: Task) -> str | None:
        client = in_band.client_of(self.conf, task)
        if client is None:
            return states.RESCUEWAIT
        password = task.node.instance_info.get("rescue_password")
        if not isinstance(password, str):
            raise IronicRulesError("instance_info has no rescue_password any more.")
        hashed = secretutils.crypt_password(password, secretutils.crypt_mksalt(_SALT))
        client.run("rescue.finalize_rescue", {"rescue_password": hashed, "hashed": True})
        in_band.forget(task)
        return None

    def unrescue(self, task: Task) -> None:
        booting.leave(self, task)
        in_band.forget(task)
        booting.boot_instance(self, task)

    def clean_up(self, task: Task) -> None:
        booting.stop(self, task)
        in_band.forget(task)
