"""The commands of the user guides, run in order, with a running service."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from tests.functional.clients import warm_openstack
from tests.functional.processes import standalone, wait_for

ROOT = Path(__file__).resolve().parents[2]
PAGES = ROOT / "doc" / "source"
ENDPOINT = "http://127.0.0.1:6385"
#: Commands that the test replaces: the service runs, and the packages are installed.
NOT_TYPED = re.compile(r"^(?:python3 -m venv|\.venv/bin/(?:ironic-rules( |$)|pip ))")

VERSION = "X-OpenStack-Ironic-API-Version: 1.96"


#: Texts that differ each time, on a page and in the output of its command.
UNIQUE = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.+]+"
                    r"|127\.0\.0\.1:[0-9]+|[0-9]+\.[0-9] s\b")


def examples(page: str) -> list[tuple[str, list[str]]]:
    """Return the commands after the ``$`` prompts of a page, with their further lines, and what they print there."""
    blocks = re.findall(r"^\.\. code-block:: console\n\n((?:(?: +.*)?\n)+)", (PAGES / page).read_text(), re.MULTILINE)
    found = []
    for block in blocks:
        text = re.sub(r"^   ", "", block, flags=re.MULTILINE)
        for command, printed in re.findall(
                r"^\$ (.+\n(?:    .+\n)*(?:  [^ ].*\n)*)((?:(?!\$ ).*\n)*)", text, re.MULTILINE):
            found.append((command.strip(), printed.strip().splitlines()))
    return found


def commands(page: str) -> list[str]:
    """Return the commands of a page."""
    return [command for command, _ in examples(page)]


def ini_blocks(page: str) -> list[str]:
    """Return the configurations that a page shows."""
    blocks = re.findall(r"^\.\. code-block:: ini\n\n((?:(?: +.*)?\n)+)", (PAGES / page).read_text(), re.MULTILINE)
    return [re.sub(r"^   ", "", block, flags=re.MULTILINE) for block in blocks]


def check_printed(command: str, shown: list[str], output: str) -> None:
    """Check that a command has printed the lines that its page shows, in this order; ``...`` is any text or line."""
    lines = iter(UNIQUE.sub("", line.rstrip()) for line in output.splitlines())
    for text in shown:
        pattern = re.compile(".*".join(map(re.escape, UNIQUE.sub("", text.rstrip()).split("..."))))
        assert any(pattern.fullmatch(line) for line in lines), f"{command}\ndoes not print: {text}\nbut: {output}"


def typed(page: str, url: str, folder: Path) -> list[str]:
    """Run the commands of a page in one shell, in the source folder; return what each printed."""
    scripts = sysconfig.get_path("scripts")
    mark = "=== end of a command ==="
    lines = ["set -e -o pipefail"]
    expected = [example for example in examples(page) if not NOT_TYPED.match(example[0])]
    for command in commands(page):
        if not NOT_TYPED.match(command):
            lines += [command.replace(ENDPOINT, url).replace(".venv/bin/openstack", str(warm_openstack.executable()))
                      .replace(".venv/bin/", f"{scripts}/"), f"echo; echo '{mark}'"]
        # A user who types the next command is slower than a conductor.
        if " node inspect " in command or "/continue_inspection" in command:
            begun = f"curl -sSf -H '{VERSION}' {url}/v1/nodes?provision_state=inspecting"
            lines.append(f"while {begun} | grep -q uuid; do sleep 0.05; done")
    shell = subprocess.run(
        ["bash", "-c", "\n".join(lines)], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False,
        env={**os.environ, "PYTHONWARNINGS": "ignore", "HOME": str(folder)})
    assert shell.returncode == 0, shell.stdout + shell.stderr
    outputs = [output.strip() for output in shell.stdout.split(mark)[:-1]]
    for (command, shown), output in zip(expected, outputs, strict=True):
        check_printed(command, shown, output)
    return outputs


def get(url: str) -> Any:
    shown = subprocess.run(["curl", "-sSf", "-H", VERSION, url],
                           capture_output=True, text=True, timeout=60, check=True)
    return json.loads(shown.stdout)


pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        subprocess.run(["bash", "-c", "curl --help all | grep -q -- --json"], check=False).returncode != 0,
        reason="curl 7.82 or newer is not installed"),
]


def test_the_quick_start_leads_to_a_node_with_the_trait_of_a_rule(tmp_path):
    with standalone(tmp_path) as (_, url):
        typed("install/quickstart.rst", url, tmp_path)
        node = wait_for("the end of the inspection", lambda: next(
            (node for node in get(url + "/v1/nodes/detail")["nodes"] if node["provision_state"] == "manageable"), None))

        assert (node["name"], node["traits"]) == ("first", ["CUSTOM_LARGE_MEMORY"])
        assert len(get(url + "/v1/ports?node=first")["ports"]) == 2

        typed("user/inspection.rst", url, tmp_path)  # readers continue there, with the same service


def test_the_path_to_production_begins_with_a_service_that_works(tmp_path):
    with standalone(tmp_path) as (_, url):
        assert typed("install/production.rst", url, tmp_path)[1].startswith('{"status":"OK"')
        assert "inspection_rules" in json.loads((tmp_path / "rules.json").read_text())


def test_the_inspection_guide_leads_to_an_inspected_node(tmp_path):
    with standalone(tmp_path) as (_, url):
        outputs = typed("user/inspection.rst", url, tmp_path)
        node = wait_for("the end of the inspection", lambda: next(
            (node for node in get(url + "/v1/nodes/detail")["nodes"] if node["provision_state"] == "manageable"), None))

        assert node["name"] == "r660"
        assert node["properties"] == {"cpu_arch": "x86_64"}
        assert len(get(url + "/v1/ports?node=r660")["ports"]) == 4
        assert json.loads(outputs[-1])["inventory"]["system_vendor"]["serial_number"] == "4HT81X3"


def test_the_guide_to_discovery_leads_to_a_discovered_node(tmp_path):
    config, = (block for block in ini_blocks("user/discovery.rst") if "fake-hardware" in block)
    with standalone(tmp_path, config=config) as (_, url):
        typed("user/discovery.rst", url, tmp_path)

        node, = get(url + "/v1/nodes/detail")["nodes"]
        assert (node["driver"], node["provision_state"], node["auto_discovered"]) == ("fake-hardware", "enroll", True)
        assert len(get(url + "/v1/ports")["ports"]) == 4


def test_the_rules_guide_leads_to_rules_that_are_as_before_a_change(tmp_path):
    with standalone(tmp_path) as (_, url):
        outputs = typed("user/inspection-rules.rst", url, tmp_path)

        rules = get(url + "/v1/inspection_rules?detail=true")["inspection_rules"]
        assert [rule["description"] for rule in rules] == [
            "Machines with 256 GiB or more", "x86 machines", "only flash", "NVMe", None,
            "at least 16 GiB of memory", "at least four disks", "NVMe disks"]
        assert [rule["bundle"] for rule in rules[5:]] == ["storage"] * 3
        assert rules[5]["conditions"][0]["args"]["values"][1] == 16384  # after the rollback
        assert sum("| ~ /conditions/0/args/values/1: 32768 |" in text for text in outputs) == 1
        refusal = next(json.loads(json.loads(text)["error_message"])["faultstring"] for text in outputs
                       if text.startswith('{"error_message"'))
        assert "/actions/0/args/name" in refusal
        assert "/actions/1/op" in refusal
        assert json.loads(outputs[-2])["inspection_scope"] == "rack-b7"
        assert [node["name"] for node in json.loads(outputs[-1])["nodes"]] == ["lab-1"]


def test_the_guide_to_dry_runs_says_why_and_what_would_be_if(tmp_path):
    with standalone(tmp_path) as (_, url):
        outputs = typed("user/why.rst", url, tmp_path)
        first, compared = (json.loads(text) for text in outputs if '"outcome"' in text)
        step, = (step for step in first["steps"] if "rule" in step)
        assert [(each["why"], each["detail"], each["short_circuited"]) for each in step["conditions"]] == [
            ("not greater", None, False), ("missing", "inventory[cpu][architektur]", True)]
        assert (compared["traits"]["added"], compared["stored"]["traits"]["added"]) == (["CUSTOM_BIG"], [])
        assert outputs[-1].endswith("3 cases, 0 failed; 100% of the conditions' outcomes covered")
        assert get(url + "/v1/nodes/why-1")["provision_state"] == "enroll"


def test_the_guide_to_deploy_templates_makes_changes_and_deletes_two(tmp_path):
    with standalone(tmp_path) as (_, url):
        outputs = typed("user/deploy-templates.rst", url, tmp_path)

        both = next(json.loads(text) for text in outputs if text.startswith('{"deploy-templates"'))["deploy-templates"]
        assert [(item["name"], item["steps"][0]["priority"]) for item in both] == [
            ("CUSTOM_RAID_MIRROR", 90), ("HW_CPU_X86_VMX", 150)]
        refusal, = (json.loads(json.loads(text)["error_message"])["faultstring"] for text in outputs
                    if text.startswith('{"error_message"'))
        assert all(place in refusal for place in ("/name: ", "/steps/0/step: ", "/steps/0/priority: "))
        assert next(json.loads(text) for text in reversed(outputs) if text.startswith('{"uuid"'))["steps"][0][
            "priority"] == 100
        assert get(url + "/v1/deploy-templates") == {"deploy-templates": []}


def test_the_guide_to_flavors_refuses_one_value_and_explains_the_rest(tmp_path):
    with standalone(tmp_path) as (_, url):
        outputs = typed("user/flavors.rst", url, tmp_path)

        refusal, = (json.loads(json.loads(text)["error_message"])["faultstring"] for text in outputs
                    if text.startswith('{"error_message"'))
        assert "/extra_specs/hw:cpu_policy: " in refusal
        specs = get(url + "/v1/flavors/gold/os-extra_specs")["extra_specs"]
        assert (len(specs), specs["trait:CUSTOM_RAID"]) == (4, "required")
        assert "No node has the resource class CUSTOM_GOLD." in "".join(outputs)
        assert "CUSTOM_RAID: 0 nodes, no deploy template" in outputs[-1]


def test_the_guide_to_deployment_leads_to_a_mirrored_node(tmp_path):
    with standalone(tmp_path) as (_, url):
        outputs = typed("user/deployment.rst", url, tmp_path)
        # The last six commands are about an allocation.
        outputs, allocated = outputs[:-6], json.loads(outputs[-2])

        assert allocated["allocation_uuid"] == allocated["instance_uuid"] is not None
        shown = json.loads(outputs[-1])
        assert shown["provision_state"] == "active"
        assert shown["raid_config"]["logical_disks"][0]["raid_level"] == "1"
        assert "raid.create_configuration (2 of 7, template CUSTOM_BM_CONFIG_RAID_DISK_MIRROR) finished" in outputs[-2]


def test_the_guide_to_authentication_lets_its_user_in_and_nobody_else(tmp_path):
    basic = "[DEFAULT]\nauth_strategy = http_basic\nhttp_basic_auth_user_file = " + str(tmp_path / "htpasswd") + "\n"
    hashing, = (command for command in commands("admin/authentication.rst") if "bcrypt" in command and "-c" in command)
    scripts = sysconfig.get_path("scripts")
    subprocess.run(["bash", "-c", hashing.replace(".venv/bin", scripts)], cwd=tmp_path, timeout=60, check=True)
    with standalone(tmp_path, config=basic) as (_, url):
        entering = [command for command in commands("admin/authentication.rst") if "admin:SECRET" in command
                    or "--os-password" in command]
        assert len(entering) == 2
        for command in entering:
            command = command.replace(ENDPOINT, url).replace(".venv/bin", scripts)
            for text, status in ((command, 0), (command.replace("SECRET", "WRONG"), "refused")):
                done = subprocess.run(["bash", "-c", text], capture_output=True, text=True, timeout=60, check=False,
                                      env={**os.environ, "PYTHONWARNINGS": "ignore", "HOME": str(tmp_path)})
                assert (done.returncode == 0) == (status == 0), done.stdout + done.stderr


def test_the_guide_to_questions_finds_machines_and_makes_conditions_of_a_rule(tmp_path):
    with standalone(tmp_path) as (_, url):
        outputs = typed("user/ask.rst", url, tmp_path)
        conditions, = (json.loads(text)["conditions"] for text in outputs if text.startswith('{"conditions"'))
        found = subprocess.run(
            ["curl", "-sSf", "-H", VERSION, "--json", json.dumps({"conditions": conditions}), url + "/v1/nodes/search"],
            capture_output=True, text=True, timeout=60, check=True)
        assert len(json.loads(found.stdout)["nodes"]) == 3
