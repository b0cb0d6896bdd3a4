"""Measures the conditions of ironic-inspector. Runs with the Python of a virtual environment that has it.

Reads a job (``{"data": .., "cases": [{"kind", "repeat", "conditions"}]}``) from the file that the first argument names,
and prints a JSON list of figures, one per case: seconds of processor time per rule, the best of the repetitions.
"""

import json
import pathlib
import sys
import time
import types


def main(job_file):
    job = json.loads(pathlib.Path(job_file).read_text())
    from ironic_inspector import rules
    from oslo_config import cfg

    cfg.CONF([], project="ironic-inspector", default_config_files=[])
    print(json.dumps([measure(rules.IntrospectionRule, case, job["data"]) for case in job["cases"]]))


def measure(rule_class, case, data):
    found = []
    for number, condition in enumerate(case["conditions"]):
        said = types.SimpleNamespace(
            field=condition["field"], op=condition["op"], multiple="any", invert=False,
            params={"value": condition["value"]})
        found.append(rule_class(str(number), [said], [], None))
    node_info = types.SimpleNamespace(uuid="u")
    best = None
    for _ in range(case["repeat"]):
        began = time.process_time()
        matched = sum(bool(rule.check_conditions(node_info, data)) for rule in found)
        spent = (time.process_time() - began) / len(found)
        best = spent if best is None else min(best, spent)
    assert not matched, "rules of the benchmark do not match"
    return best


if __name__ == "__main__":
    main(sys.argv[1])
