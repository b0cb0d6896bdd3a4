"""``ironic_rules.api.wsgi:application``, as gunicorn or uWSGI load it."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from tests.functional import databases

PROGRAM = """
import json
from webob import Request
from ironic_rules.api.wsgi import application
print(json.dumps(Request.blank("/v1/nodes").get_response(application).json))
"""


def test_the_entry_point_of_wsgi_servers_reads_the_configuration_that_the_environment_names(tmp_path):
    with databases.migrated_database("sqlite") as url:
        config = tmp_path / "ironic-rules.conf"
        config.write_text(f"[DEFAULT]\ntransport_url = ironic-rules-memory://\n[database]\nconnection = {url}\n")

        result = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=True,
                                env={**os.environ, "IRONIC_RULES_CONFIG_FILE": str(config)})

    assert json.loads(result.stdout.splitlines()[-1]) == {"nodes": []}
