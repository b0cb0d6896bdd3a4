"""Deviations of Redfish BMCs: for each change of a machine, what is asked, what counts as done, and what is tried next.

A change has *forms*, requests that mean the same, best first (``make_change``). A refusal is looked up in the table
``DEVIATIONS``: a request that came at a wrong time is repeated for a while, one in a wrong form is followed by the next
form, everything else is an error. Before that, the machine is read: what it already has is done, whatever the status
code says. A change that a BMC accepted and does not show is not done, and the next form is tried.

A deviation that has no refusal (a value in another place) is in the table too, with what is done about it. Each line
has a test with its name.
"""

from __future__ import annotations

import enum
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from oslo_log import log

from ironic_rules.hardware import waiting
from ironic_rules.models.documents import JSONObject
from ironic_rules.text import printable

LOG = log.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Area:
    """A kind of change: what is asked of a BMC, and what counts as done."""

    name: str
    request: str
    completion: str


POWER = Area("power", "The first type of reset that the BMC offers.",
             "The machine is read until it has the power state. A restart is done when it is accepted.")
BOOT_DEVICE = Area("boot device", "Target and duration of the override; then with the mode; then only what differs; "
                                  "then in the settings resource; a permanent override, last, as one for the next "
                                  "boot.",
                   "The system, or its settings resource, shows target and duration.")
BOOT_MODE = Area("boot mode", "The mode; then with target and duration as they are; then in the settings resource.",
                 "The system, or its settings resource, shows the mode.")
SECURE_BOOT = Area("secure boot", "Whether it is enabled.", "The request is accepted.")
VIRTUAL_MEDIA = Area("virtual media", "The image in the first empty drive of the type, then in the next one, of the "
                                      "system, then of managers that have no other system.",
                     "The request is accepted, or the drive shows the image (after an ejection: none).")
BIOS = Area("BIOS", "Only the settings that differ, with the apply time that the BMC offers, then without.",
            "The BMC reports the requested values after the reboot.")
RAID = Area("RAID", "Volumes one after the other, with the apply time that the controller offers, then without; those "
                    "with all of the capacity at last without a size.",
            "The BMC's tasks have ended, or the number of volumes is right.")
FIRMWARE = Area("firmware", "The URL of the image, and the system where the BMC has several; then with the protocol.",
                "The BMC's task has ended, or it reports another version.")
READING = Area("reading", "The resources of the system and of its chassis.", "What is there is reported.")
CHANGES = (POWER, BOOT_DEVICE, BOOT_MODE, SECURE_BOOT, VIRTUAL_MEDIA, BIOS, RAID, FIRMWARE)
_OVERRIDES = (BOOT_DEVICE, BOOT_MODE)


class Answer(enum.Enum):
    """The reaction to a deviation."""

    AGAIN = "asked again"
    NEXT = "next form"
    #: the form with this name is the first one
    FIRST = "first form"
    #: the value is read, or the request is made, as the line says
    OTHERWISE = "otherwise"


#: Form of a boot override: with all three parameters.
ALL_THREE = "target, duration and mode"
#: Seconds for which a failure is repeated that may be one of the request, and not only of its time.
_FAILURE_S = 20.0


@dataclass(frozen=True, slots=True)
class Deviation:
    """A line of the table.

    :ivar statuses: HTTP status of the refusal, 0 for an action that is missing; none: any
    :ivar pattern: what its message contains; None: anything
    :ivar limit_s: for how long it is asked again; None: ``[redfish]busy_timeout``
    :ivar form: the first form, for ``Answer.FIRST``
    """

    name: str
    areas: tuple[Area, ...]
    vendor: str
    deviates: str
    answer: Answer
    does: str
    source: str
    statuses: frozenset[int] = frozenset()
    pattern: re.Pattern[str] | None = field(default=None, repr=False)
    limit_s: float | None = None
    form: str | None = None

    def is_met(self, area: Area, status: int, text: str) -> bool:
        """Return whether it is this refusal."""
        if self.answer not in (Answer.AGAIN, Answer.NEXT) or area not in self.areas:
            return False
        return (not self.statuses or status in self.statuses) and (
            self.pattern is None or self.pattern.search(text) is not None)


def _ids(*names: str) -> re.Pattern[str]:
    """Return a pattern for identifiers of messages, in any version of their registry."""
    return re.compile(rf"\b(?:{'|'.join(names)})\b")


_BASE = "https://www.dmtf.org/dsp/DSP8011"
_SUSHY = "https://opendev.org/openstack/sushy/src/branch/master/sushy"
_IRONIC = "https://opendev.org/openstack/ironic/src/branch/master/ironic/drivers/modules/redfish"
_ANSIBLE = "https://github.com/ansible-collections/community.general"
_ANY = "any"

#: The refusals are compared in this order.
DEVIATIONS = (
    # At a wrong time
    Deviation("busy", CHANGES, _ANY, "The BMC is busy with another request (409, 423, 429, 503).", Answer.AGAIN,
              "The request is repeated.", "https://www.dmtf.org/dsp/DSP0266", frozenset({409, 423, 429, 503})),
    Deviation("in-use", CHANGES, _ANY, "A message says that the resource is in use, or the service not available.",
              Answer.AGAIN, "The request is repeated, whatever the status.", _BASE,
              pattern=_ids("ResourceInUse", "ResourceInStandby", "ServiceTemporarilyUnavailable")),
    Deviation("post", CHANGES, "HPE iLO", "Changes are refused with 400 while the machine is in POST.", Answer.AGAIN,
              "The request is repeated.", "https://github.com/ironcore-dev/metal-operator/issues/997",
              frozenset({400}), _ids("UnableToModifyDuringSystemPOST")),
    Deviation("not-ready", CHANGES, "HPE iLO", "Changes are refused while the previous one is in progress.",
              Answer.AGAIN, "The request is repeated.", f"{_SUSHY}/connector.py",
              pattern=_ids("InvalidOperationForSystemState")),
    Deviation("lifecycle-controller", CHANGES, "Dell iDRAC", "Changes are refused while iDRAC is not ready.",
              Answer.AGAIN, "The request is repeated.", f"{_SUSHY}/connector.py", pattern=re.compile("SYS518")),
    Deviation("pending-job", (BIOS, *_OVERRIDES), "Dell iDRAC", "Changes are refused while the job of the previous one "
              "runs, although its settings are shown already.", Answer.AGAIN, "The request is repeated.",
              "https://github.com/dsx-ai-factory/libredfish/pull/25", pattern=re.compile("SYS011|already commit+ed")),
    Deviation("eject-in-progress", (VIRTUAL_MEDIA,), "Dell iDRAC", "An insertion fails with 500 while an ejection is "
              "in progress.", Answer.AGAIN, "The request is repeated for 20 seconds.",
              "https://storyboard.openstack.org/#!/story/2008504", frozenset({500, 502, 504}), limit_s=_FAILURE_S),
    Deviation("fails-once", _OVERRIDES, _ANY, "A request fails once with 500 after another change.", Answer.AGAIN,
              "The request, which is the same as often as it is made, is repeated for 20 seconds.", _BASE,
              frozenset({500, 502, 504}), limit_s=_FAILURE_S),
    Deviation("stale-etag", (*_OVERRIDES, SECURE_BOOT), "Lenovo XCC", "412 (or 428), because the resource has "
              "changed since it was read.", Answer.AGAIN, "It is read, and the request repeated for 20 seconds.",
              f"{_ANSIBLE}/issues/11261", frozenset({412, 428}), limit_s=_FAILURE_S),
    # In a wrong form
    Deviation("future-state", _OVERRIDES, "AMI, ASRock", "An override is only accepted by the settings resource.",
              Answer.NEXT, "The settings resource is changed.", "https://github.com/DMTF/Redfish-Tacklebox/issues/144",
              pattern=_ids("OperationSupportedInFutureStateURI")),
    Deviation("all-or-none", _OVERRIDES, "AMI", "An override without its mode is refused.", Answer.NEXT,
              "All three parameters are sent.", f"{_ANSIBLE}/issues/11542", pattern=_ids("PropertyMissing")),
    Deviation("not-permanent", (BOOT_DEVICE,), _ANY, "A permanent override is refused: newer versions of the standard "
              "do not have it.", Answer.NEXT, "The device is set for one boot, with a warning, and again before each "
              "boot that the service begins.", f"{_IRONIC}/management.py", frozenset({400}),
              _ids("PropertyValueNotInList")),
    Deviation("unchanged", _OVERRIDES, _ANY, "A parameter that has this value already is refused.", Answer.NEXT,
              "Only what differs is sent.", "https://storyboard.openstack.org/#!/story/2007355", frozenset({400}),
              _ids("PropertyValueConflict", "PropertyValueModified", "PropertyNotUpdated")),
    Deviation("fixed-mode", _OVERRIDES, "HPE iLO", "The mode is read-only.", Answer.NEXT,
              "An override is requested without it.", f"{_ANSIBLE}/issues/3509",
              pattern=_ids("PropertyNotWritable")),
    Deviation("no-mode", _OVERRIDES, "Supermicro X10", "There is no mode.", Answer.NEXT,
              "An override is requested without it.", "https://github.com/ironcore-dev/metal-operator/issues/982",
              pattern=_ids("PropertyUnknown")),
    Deviation("other-refusal", _OVERRIDES, _ANY, "An override is refused with 400 for another reason.", Answer.NEXT,
              "The next form is tried.", f"{_IRONIC}/management.py", frozenset({400, 405})),
    Deviation("reset-type", (POWER,), "IBM OpenBMC", "A type of reset is offered, and refused.", Answer.NEXT,
              "The next type is requested; of a restart, at last, off and on.",
              "https://github.com/ibm-openbmc/bmcweb/pull/157",
              pattern=_ids("ActionParameterUnknown", "ActionParameterNotSupported", "ActionParameterValueNotInList",
                           "ActionParameterValueFormatError", "PropertyValueNotInList")),
    Deviation("drive-refuses", (VIRTUAL_MEDIA,), "Cisco UCS", "Some drives are for the BMC's own use, and refuse with "
              "400 or 405.", Answer.NEXT, "The next drive is tried.", "https://bugs.launchpad.net/ironic/+bug/2031595",
              frozenset({400, 405})),
    Deviation("drive-without-action", (VIRTUAL_MEDIA,), "Cisco C845A, OpenBMC", "Some drives have no InsertMedia.",
              Answer.NEXT, "The next drive is tried.", f"{_IRONIC}/boot.py", frozenset({0})),
    Deviation("apply-time", (BIOS, RAID), _ANY, "An apply time is offered, and refused.", Answer.NEXT,
              "The change is requested without it.", "https://www.dmtf.org/dsp/DSP0266",
              pattern=re.compile("ApplyTime")),
    Deviation("raid-metadata", (RAID,), "Dell BOSS", "A volume with the capacity of its drives is refused, because the "
              "controller's metadata are on them.", Answer.NEXT, "If the requested size is MAX, none is sent.",
              "https://github.com/metal3-io/baremetal-operator/issues/2720", frozenset({400}),
              re.compile("capacity|size", re.IGNORECASE)),
    Deviation("transfer-protocol", (FIRMWARE,), _ANY, "An update without the protocol is refused.", Answer.NEXT,
              "The protocol of the URL is sent.", "https://www.dmtf.org/dsp/DSP2062",
              pattern=re.compile("TransferProtocol")),
    # A state that it already has: make_change reads the machine after each refusal.
    Deviation("already", CHANGES, "HPE iLO, Dell iDRAC", "A change to the state that the machine has is refused.",
              Answer.OTHERWISE, "The machine is read: the change is done.",
              "https://github.com/apache/cloudstack/issues/12921"),
    Deviation("already-on", (POWER,), "Dell iDRAC", "The machine is on already, which is told as a conflict (409).",
              Answer.OTHERWISE, "The machine is read: the change is done, and not asked again.",
              "https://github.com/cybozu-go/neco/pull/1520"),
    Deviation("power-without-effect", (POWER,), "Lenovo", "On or off is accepted, and nothing happens.",
              Answer.OTHERWISE, "After 20 seconds it is requested once more.",
              "https://github.com/dsx-ai-factory/infra-controller/pull/595"),
    Deviation("accepted-without-effect", _OVERRIDES, _ANY, "A change is accepted, and not made.", Answer.OTHERWISE,
              "The next form is tried; if none is shown, the log and the history of the node have a warning.",
              f"{_IRONIC}/management.py"),
    # The form that a vendor is known to accept
    Deviation("asrockrack", (BOOT_DEVICE,), "ASRockRack", "All three parameters are required.", Answer.FIRST,
              "They are sent at once.", f"{_IRONIC}/management.py", form=ALL_THREE),
    # Made in another way
    Deviation("precondition", _OVERRIDES, "AMI, Lenovo", "A change without If-Match is refused (428).",
              Answer.OTHERWISE, "The ETag of the resource is sent.", "https://github.com/stmcginnis/gofish/issues/171"),
    Deviation("usb-cd", (BOOT_DEVICE,), "Supermicro", "The virtual CD drive is the boot device UsbCd.",
              Answer.OTHERWISE, "UsbCd is requested where it is offered; of other vendors, where Cd is not offered.",
              f"{_SUSHY}/resources/system/system.py"),
    Deviation("media-protocol", (VIRTUAL_MEDIA,), "Cisco, Supermicro", "An insertion without the protocol is refused.",
              Answer.OTHERWISE, "It is repeated with TransferProtocolType.",
              f"{_SUSHY}/resources/manager/virtual_media.py"),
    Deviation("empty-body", (VIRTUAL_MEDIA,), "HPE iLO", "An ejection without a body is refused (400, 415).",
              Answer.OTHERWISE, "It is repeated with an empty object.",
              f"{_SUSHY}/resources/manager/virtual_media.py"),
    Deviation("left-image", (VIRTUAL_MEDIA,), "Supermicro", "An empty drive still shows its last image.",
              Answer.OTHERWISE, "A drive is empty if nothing is inserted.", f"{_ANSIBLE}/issues/6969"),
    Deviation("two-places", (VIRTUAL_MEDIA,), "Dell iDRAC 6.00", "Drives of the system and of the manager; only one of "
              "them can be used.", Answer.OTHERWISE, "Drives of the system are tried, then drives of the manager.",
              "https://github.com/dell/iDRAC-Redfish-Scripting/issues/265"),
    Deviation("several-systems", (FIRMWARE,), "sushy-tools, multi-node chassis", "An update without targets is for "
              "other systems, too.", Answer.OTHERWISE, "Targets names the system of the node.",
              f"{_IRONIC}/firmware.py"),
    Deviation("shared-manager", (VIRTUAL_MEDIA,), "multi-node chassis", "A manager of several systems has drives, of "
              "which nothing says whose they are.", Answer.OTHERWISE, "They are not used.",
              "https://www.dmtf.org/dsp/DSP0268"),
    # Read elsewhere
    Deviation("service-tag", (READING,), "Dell", "SerialNumber is that of the board; SKU is the service tag, which the "
              "machine itself reports.", Answer.OTHERWISE, "SKU is the serial number; a node is recognized by both.",
              "https://github.com/bb-Ricardo/netbox-sync/pull/551"),
    Deviation("adapters-only", (READING,), "Lenovo XCC", "MAC addresses are only found below NetworkAdapters.",
              Answer.OTHERWISE, "They are added to those of EthernetInterfaces.",
              "https://github.com/dsx-ai-factory/infra-controller/issues/4436"),
    Deviation("port-address", (READING,), "Lenovo XCC", "The MAC address of a port is in Oem.Lenovo.", Answer.OTHERWISE,
              "It is read where the standard's property is missing.",
              "https://github.com/dsx-ai-factory/nv-redfish/pull/177"),
    Deviation("absent", (READING,), _ANY, "Network interfaces are listed that are absent.", Answer.OTHERWISE,
              "They are neither in the inventory nor ports.", "https://www.dmtf.org/dsp/DSP0268"),
    Deviation("metadata", (READING, BIOS), _ANY, "Annotations (names with @) are among the settings.", Answer.OTHERWISE,
              "They are no settings.", "https://www.dmtf.org/dsp/DSP0266"),
)


def judge(area: Area, status: int, text: str) -> Deviation | None:
    """Return the line of the table that a refusal is; None: it is an error."""
    return next((deviation for deviation in DEVIATIONS if deviation.is_met(area, status, text)), None)


def first_form(area: Area, vendors: Iterable[object]) -> str | None:
    """Return the name of the form that is tried first with a vendor; None without one.

    :param vendors: names of the vendor, of the node and of the system
    """
    for vendor in vendors:
        for deviation in DEVIATIONS:
            if deviation.answer is Answer.FIRST and area in deviation.areas and isinstance(vendor, str) \
                    and vendor.replace(" ", "").lower().startswith(deviation.vendor.lower()):
                return deviation.form
    return None


@dataclass(frozen=True, slots=True)
class Form:
    """A request for a change; ``is_done`` reads the machine, None if that cannot show the change."""

    name: str
    send: Callable[[], Any]
    is_done: Callable[[], bool] | None = None


@dataclass(frozen=True, slots=True)
class Made:
    """A change that was made: by which form, with which reply (None without one), and whether the machine shows it."""

    form: Form
    reply: Any = None
    is_shown: bool = True


#: Seconds between repetitions, and within which a BMC shows what it has accepted.
_FIRST_PAUSE_S, _LONGEST_PAUSE_S, _SHOWN_S = 1.0, 10.0, 1.0


def make_change(area: Area, forms: Sequence[Form], errors: Any, limit_s: float, *,
                is_shown_at_once: bool = False) -> Made:
    """Request a change until the BMC has accepted it, or has it already.

    :param forms: best first
    :param errors: ``sushy.exceptions``
    :param limit_s: for how long a busy BMC is asked again, over all forms
    :param is_shown_at_once: whether an accepted change must be shown, or else the next form is tried
    :raises SushyError: that of the first form, if none is accepted
    """
    deadline = time.monotonic() + min(limit_s, waiting.left_s())
    first_error: Exception | None = None
    accepted: Made | None = None
    for form in forms:
        try:
            reply = _until_accepted(area, form, errors, deadline)
        except _Done:
            return Made(form)
        except errors.SushyError as exc:
            if (line := _line(area, exc)) is None or line.answer is not Answer.NEXT:
                raise (first_error if first_error is not None and line is None else exc) from None
            LOG.info("The BMC refused a change of the %s (%s), the next form is tried: %s", area.name, form.name,
                     printable(" ".join(str(exc).split()), 300))
            first_error = first_error or exc
            continue
        if not is_shown_at_once or form.is_done is None or _is_shown(form.is_done, errors):
            return Made(form, reply)
        accepted = accepted or Made(form, reply, is_shown=False)
    if accepted is not None:
        return accepted
    assert first_error is not None  # there is a form
    raise first_error


class _Done(Exception):
    """The machine has what was refused."""


def _until_accepted(area: Area, form: Form, errors: Any, deadline: float) -> Any:
    pause_s, began = _FIRST_PAUSE_S, time.monotonic()
    while True:
        try:
            return form.send()
        except (errors.ConnectionError, errors.AccessError, errors.MissingXAuthToken):
            raise
        except errors.SushyError as exc:
            line = _line(area, exc)
            if form.is_done is not None and _reads(form.is_done, errors):
                raise _Done from exc
            if line is None or line.answer is not Answer.AGAIN:
                raise
            until = deadline if line.limit_s is None else min(deadline, began + line.limit_s)
            if time.monotonic() + pause_s > until:
                raise
            LOG.info("The BMC refused a change of the %s (%s), which is repeated in %s s: %s", area.name, line.name,
                     pause_s, printable(" ".join(str(exc).split()), 300))
            time.sleep(pause_s)
            pause_s = min(pause_s * 1.5, _LONGEST_PAUSE_S)


def _is_shown(is_done: Callable[[], bool], errors: Any) -> bool:
    if _reads(is_done, errors):
        return True
    time.sleep(_SHOWN_S)
    return _reads(is_done, errors)


def _reads(is_done: Callable[[], bool], errors: Any) -> bool:
    """Return whether the machine shows a change; a BMC that refuses to be read does not show it."""
    try:
        return is_done()
    except (errors.ConnectionError, errors.AccessError, errors.MissingXAuthToken):
        raise
    except errors.SushyError:
        return False


def _line(area: Area, exc: Any) -> Deviation | None:
    return judge(area, getattr(exc, "status_code", None) or 0, str(exc))


def is_dell(manufacturer: object) -> bool:
    """Return whether a machine is Dell's, by its ``Manufacturer``."""
    return isinstance(manufacturer, str) and manufacturer.strip().lower().startswith("dell")


def service_tag(manufacturer: object, sku: object) -> str | None:
    """Return the serial number by which a machine knows itself, if that is its ``SKU``; None if it is not."""
    return sku.strip() if is_dell(manufacturer) and isinstance(sku, str) and sku.strip() else None


def settings_of(attributes: object) -> JSONObject:
    """Return BIOS settings without annotations."""
    return {name: value for name, value in attributes.items() if "@" not in name} \
        if isinstance(attributes, Mapping) else {}
