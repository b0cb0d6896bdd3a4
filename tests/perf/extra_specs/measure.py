"""Measures checks of extra specs. Runs with this project's Python and, as a script, with that of Nova's environment.

Takes ``own`` or ``nova`` as its argument and prints a JSON object: microseconds of processor time by the name of the
case, the best of several runs.
"""

import contextlib
import json
import sys
import time

#: name of the case: extra specs that are checked one after another
CASES = {
    "a plain key, one of several values": {"hw:cpu_policy": "dedicated"},
    "a plain key, an integer": {"hw:numa_nodes": "2"},
    "a plain key, a boolean": {"hw:boot_menu": "true"},
    "a key that does not exist": {"hw:cpu_pollllicy": "dedicated"},
    "a custom trait": {"trait:CUSTOM_RAID": "required"},
    "a bare-metal flavor, 8 extra specs": {
        "resources:CUSTOM_BAREMETAL_GOLD": "1", "resources:VCPU": "0", "resources:MEMORY_MB": "0",
        "resources:DISK_GB": "0", "trait:CUSTOM_RAID": "required", "trait:CUSTOM_BIOS": "required",
        "trait:HW_CPU_X86_VMX": "required", "trait:CUSTOM_OLD": "forbidden"},
}


def main(side):
    check, sets = _nova() if side == "nova" else _own()
    found = {}
    for name, specs in CASES.items():
        pairs = list(specs.items())
        count = 3 if side == "nova" and not name.startswith("a plain") else 2000
        found[name] = best(lambda pairs=pairs: [check(key, value) for key, value in pairs], count)
    found.update(sets)
    print(json.dumps(found))


def best(call, count):
    """Return the microseconds of one call, the best of five times ``count`` calls."""
    call()
    times = []
    for _ in range(5):
        start = time.process_time()
        for _ in range(count):
            call()
        times.append((time.process_time() - start) / count * 1e6)
    return min(times)


def _nova():
    from nova import exception
    from nova.api.validation.extra_specs import validators

    def check(key, value):
        with contextlib.suppress(exception.ValidationError):
            validators.validate(key, value)

    return check, {}


def _own():
    start = time.process_time()
    from ironic_rules.extra_specs import check, installed
    imported = time.process_time()
    installed.built_in()
    built = time.process_time()
    registry = installed.extra_specs()
    with_plugins = time.process_time()
    check.validate("trait:HW_CPU_X86_AVX", "required")
    traits = time.process_time()
    registry.hints.nearest("hw:cpu_pollllicy")
    fifty = {item.validator.name: "1" for item in registry if not item.template.parameters}
    fifty = dict(list(fifty.items())[:50])
    hostile = "1" + ",1-1" * 25_000 + "!"
    from ironic_rules.extra_specs import values

    return check.validate, {
        "import": (imported - start) * 1e6,
        "definitions and registry": (built - imported) * 1e6,
        "the same, with plug-ins of all packages": (with_plugins - built) * 1e6,
        "the first trait, which loads os-traits": (traits - with_plugins) * 1e6,
        "50 extra specs at once": best(lambda: check.check(fifty), 200),
        "the nearest key": best(lambda: registry.hints.nearest("hw:cpu_pollllicy"), 100),
        "the nearest trait": best(lambda: registry.hints.nearest("trait:HW_CPU_X86_AVX9"), 100),
        "a CPU map of 100,000 characters, parsed": best(lambda: values.cpu_map_problem(hostile, True), 10),
    }


if __name__ == "__main__":
    main(sys.argv[1])
