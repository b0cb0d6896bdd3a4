"""Hardware types and their interfaces, one folder per family, and which of them this process serves.

``base`` says what every interface of a kind has; ``redfish``, ``ipmi`` and ``agent`` are families of interfaces,
``fake`` and ``absent`` one module each; ``boot`` has what ramdisks are booted from; ``enabled`` loads what the
configuration names.
"""
