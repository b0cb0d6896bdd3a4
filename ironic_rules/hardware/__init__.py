"""Hardware types and their interfaces, one folder per family, and those of them that this process serves.

``base`` defines what every interface of a kind provides; ``redfish``, ``ipmi`` and ``agent`` are families of
interfaces, ``fake`` and ``absent`` one module each; ``boot`` contains the boot interfaces; ``enabled`` loads the
hardware types and interfaces that are enabled in the configuration.
"""
