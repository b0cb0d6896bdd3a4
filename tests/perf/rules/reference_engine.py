"""Measures the rule engine of the reference service. Runs with the Python of that service's virtual environment.

Reads a job (``{"inventory": .., "plugin_data": .., "cases": [{"kind", "repeat", "saves", "hits", "rules"}]}``) from the
file that the first argument names and prints a JSON list of figures, one per case: seconds for all rules together, the
best of the repetitions, ``cpu`` and ``elapsed``; of the whole (``total``) and of reading the rules alone (``reading``).
"""

import gc
import json
import pathlib
import sys
import tempfile
import time
import types
import uuid


def main(job_file):
    job = json.loads(pathlib.Path(job_file).read_text())
    with tempfile.TemporaryDirectory() as folder:
        figures = measure_all(folder, job)
    print(json.dumps(figures))


def measure_all(folder, job):
    from ironic.conf import CONF
    from oslo_db import options

    CONF([], project="ironic", default_config_files=[])
    options.set_defaults(CONF)
    CONF.set_override("connection", f"sqlite:///{folder}/reference.sqlite", "database")
    from ironic import objects
    from ironic.db import migration

    migration.create_schema()
    objects.register_all()
    return [measure(case, job["inventory"], job["plugin_data"]) for case in job["cases"]]


def measure(case, inventory, plugin_data):
    from ironic import objects
    from ironic.common import context as ironic_context
    from ironic.common.inspection_rules import engine

    context = ironic_context.get_admin_context()
    def read():
        objects.InspectionRule.list(context=context, filters={"phase": "main"})

    store(case["rules"])
    totals, readings = [], []
    # The first one is a warm-up.
    for _ in range(case["repeat"] + 1):
        node = make_node(objects, context, case["saves"])
        task = types.SimpleNamespace(node=node, context=context, ports=[])
        own, data = (json.loads(json.dumps(each)) for each in (inventory, plugin_data))
        totals.append(timed(engine.apply_rules, task, own, data, "main"))
        readings.append(timed(read))
        if len(node.extra) != case["hits"]:
            raise RuntimeError(f"{case['kind']}: {len(node.extra)} attributes were set, not {case['hits']}")
    return {"total": best(totals[1:]), "reading": best(readings[1:])}


def make_node(objects, context, saves):
    """Return a node; without ``saves`` one that has only what the engine uses, and does not save."""
    if saves:
        node = objects.Node(context, driver="fake-hardware", uuid=str(uuid.uuid4()))
        node.create()
        return node
    return types.SimpleNamespace(id=1, uuid=str(uuid.uuid4()), extra={}, properties={}, save=lambda: None)


def store(rules):
    from ironic.db.sqlalchemy import models
    from oslo_db.sqlalchemy import enginefacade

    table = models.InspectionRule.__table__
    with enginefacade.writer.using(types.SimpleNamespace()) as session:
        session.execute(table.delete())
        session.execute(table.insert(), [{**rule, "version": "1.1"} for rule in rules])


def timed(work, *arguments):
    gc.collect()
    cpu, elapsed = time.process_time(), time.perf_counter()
    work(*arguments)
    return {"cpu": time.process_time() - cpu, "elapsed": time.perf_counter() - elapsed}


def best(timings):
    return {clock: min(timing[clock] for timing in timings) for clock in ("cpu", "elapsed")}


if __name__ == "__main__":
    main(sys.argv[1])
