"""Communication with an agent: its possible answers, and recovery when either side has lost its state.

The agent here is a server with predefined answers; the real one runs in tests/functional/clients.
"""

from __future__ import annotations

import http.server
import json
import threading

import pytest

from ironic_rules.context import admin
from ironic_rules.exceptions import AgentChanged, IronicRulesError
from ironic_rules.hardware.agent import client as agent_client
from ironic_rules.hardware.agent import in_band
from ironic_rules.hardware.agent.client import AgentClient
from ironic_rules.hardware.agent.deploy import CustomAgentDeploy
from ironic_rules.models.draft import NodeDraft
from ironic_rules.models.internal_keys import AGENT_COMMAND_STARTED, AGENT_LAST_COMMAND, AGENT_MANAGERS, AGENT_REBOOTS
from ironic_rules.models.task import Task
from ironic_rules.steps.procedures import CLEANING
from tests.unit.hardware import dripping
from tests.walking import walking

TOKEN = "t" * 43
FIELDS = ("uuid", "name", "driver", "properties", "instance_info", "extra", "raid_config", "target_raid_config",
          "resource_class", "instance_uuid", "provision_state")
STEP = {"interface": "deploy", "step": "write_system", "args": {}, "priority": 80}


class Agent:
    """Answers GET with ``commands``, and POST with ``reply``; records what was started."""

    def __init__(self):
        self.commands, self.reply, self.status, self.started = [], {"command_status": "RUNNING"}, 200, []
        agent = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.answer({"commands": agent.commands} if isinstance(agent.commands, list) else agent.commands)

            def do_POST(self):
                agent.started.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self.answer(agent.reply)

            def answer(self, body):
                agent.path = self.path
                content = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(agent.status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *arguments):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()


@pytest.fixture
def agent():
    served = Agent()
    yield served
    served.server.shutdown()
    served.server.server_close()


@pytest.fixture
def client(agent):
    return AgentClient(agent.url, TOKEN, ())


@pytest.fixture
def deploy(conf):
    conf.set_override("image_url_denied_networks", [], group="deploy")
    return CustomAgentDeploy(conf, None)


@pytest.fixture
def task(agent):
    values = {**dict.fromkeys(FIELDS), "driver_internal_info": {
        "agent_url": agent.url, AGENT_LAST_COMMAND: "asked", AGENT_MANAGERS: {"M": "1"}},
        "instance_info": {"image_password": "secret", "image_url": "http://images/1?sig=2"}}
    context = admin()
    context.agent_token = TOKEN
    return Task(NodeDraft(values), context=context)


def command(ident, status="SUCCEEDED", **fields):
    return {"id": ident, "command_name": "execute_deploy_step", "command_status": status, **fields}


def test_every_request_has_the_token(agent, client):
    assert client.commands() == []

    assert agent.path == f"/v1/commands/?agent_token={TOKEN}"


@pytest.mark.parametrize("answer", [b"", b"{", b"[]", {"commands": 1}, {"commands": ["x"]}, {}, b"\xff",
                                    b'{"commands": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", b"[" * 100_000])
def test_answers_that_are_none(agent, client, answer):
    agent.commands = answer

    with pytest.raises(IronicRulesError, match="agent"):
        client.commands()


def test_an_answer_that_is_too_long(agent, client, monkeypatch):
    monkeypatch.setattr(agent_client, "MAX_ANSWER_BYTES", 100)
    agent.commands = [command("x" * 200)]

    with pytest.raises(IronicRulesError, match="too long"):
        client.commands()


@walking("start", [dripping.HEADERS, dripping.BODY])
def test_an_answer_that_never_ends(start):
    with dripping.server(start) as url, pytest.raises(IronicRulesError, match="takes too long"):
        AgentClient(url, TOKEN, (), timeout_s=0.4).commands()


def test_an_error_of_the_agent_is_told_in_printable_form(agent, client):
    agent.status, agent.reply = 409, {"faultstring": "busy\x1b[2J"}

    with pytest.raises(IronicRulesError, match="status 409: busy") as caught:
        client.start("deploy.x", {})

    assert "\x1b" not in str(caught.value)


@walking("url", ["http://127.0.0.1:1", "nonsense", "http://[::1"])
def test_an_agent_that_is_not_there_and_no_token_in_the_error(url):
    with pytest.raises(IronicRulesError) as caught:
        AgentClient(url, TOKEN, (), timeout_s=2).commands()

    assert TOKEN not in str(caught.value)
    assert caught.value.__cause__ is None


def test_a_certificate_that_is_none():
    with pytest.raises(IronicRulesError, match="certificate"):
        AgentClient("https://192.0.2.1", TOKEN, (), "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n")


def test_a_failed_command_says_why(agent, client):
    agent.reply = command("1", "FAILED", command_error={"message": "Failed", "details": "no disk"})

    with pytest.raises(IronicRulesError, match=r"no disk \(FAILED\)"):
        client.run("deploy.get_deploy_steps", {})


def test_a_step_is_started_watched_and_done(agent, deploy, task):
    agent.commands = [command("asked")]
    assert deploy.run_in_band(task, STEP) == "wait call-back"
    started, = agent.started
    assert (started["name"], started["params"]["step"]) == ("deploy.execute_deploy_step", STEP)
    assert started["params"]["deploy_version"] == {"M": "1"}
    assert started["params"]["node"]["instance_info"] == {
        "image_password": "******", "image_url": "http://images/1?sig=2"}

    agent.commands.append(command("new", "RUNNING"))
    assert deploy.run_in_band(task, STEP) == "wait call-back"
    agent.commands[-1] = command("new")
    assert deploy.run_in_band(task, STEP) is None

    assert len(agent.started) == 1
    assert task.node.driver_internal_info[AGENT_LAST_COMMAND] == "new"
    assert AGENT_COMMAND_STARTED not in task.node.driver_internal_info


@pytest.mark.parametrize(("status", "ends"), [("RUNNING", "wait call-back"), ("SUCCEEDED", None)])
def test_a_step_whose_start_was_not_noted_is_not_started_again(agent, deploy, task, status, ends):
    """The conductor has died between the start and the commit."""
    agent.commands = [command("asked"), command("unknown", status)]

    assert deploy.run_in_band(task, STEP) == ends
    assert agent.started == []


@pytest.mark.parametrize("status", ["FAILED", "CLEAN_VERSION_MISMATCH", None])
def test_a_step_that_fails(agent, deploy, task, status):
    agent.commands = [command("asked"), command("new", status, command_error={"details": "it smokes"})]

    with pytest.raises(IronicRulesError, match="it smokes"):
        deploy.run_in_band(task, STEP)


def test_a_step_that_the_agent_has_forgotten_is_not_started_again(agent, deploy, task):
    deploy.run_in_band(task, STEP)
    agent.commands = []

    with pytest.raises(IronicRulesError, match="restarted"):
        deploy.run_in_band(task, STEP)
    assert len(agent.started) == 1


@pytest.mark.parametrize("lacks", ["token", "url"])
def test_without_a_heartbeat_it_waits(agent, deploy, task, lacks):
    if lacks == "token":
        task.context.agent_token = None
    else:
        task.node.driver_internal_info = {}

    assert deploy.run_in_band(task, STEP) == "wait call-back"
    assert deploy.continue_step(task, "deploy", {}) == "wait call-back"
    assert agent.started == []


def test_the_agent_is_asked_for_its_steps(agent, deploy, task):
    agent.commands = [command("asked-now")]
    agent.reply = command("asked-now", command_result={"hardware_manager_version": {"M": "2"}, "deploy_steps": {
        "M": [{"interface": "raid", "step": "create", "priority": 5, "reboot_requested": True,
               "argsinfo": {"size": {"description": "GiB", "required": True}}}], "N": []}})

    assert deploy.continue_step(task, "deploy", {}) is None

    info, = deploy.in_band_steps(task)
    assert (info.name, info.priority, info.rerunnable, info.core) == ("raid.create", 5, False, False)
    assert info.argsinfo == {"size": {"description": "GiB", "required": True}}
    internal = task.node.driver_internal_info
    assert (internal[AGENT_LAST_COMMAND], internal[AGENT_MANAGERS]) == ("asked-now", {"M": "2"})


@pytest.mark.parametrize("steps", [
    None, [], {"M": 1}, {"M": ["x"]}, {"M": [{"interface": "raid", "step": "x"}]},
    {"M": [{"interface": "coffee", "step": "x", "priority": 1}]},
    {"M": [{"interface": "raid", "step": "", "priority": 1}]},
    {"M": [{"interface": "raid", "step": "x", "priority": -1}]},
    {"M": [{"interface": "raid", "step": "x", "priority": True}]},
    {"M": [{"interface": "raid", "step": "x", "priority": 1, "argsinfo": [1]}]},
    {"M": [{"interface": "raid", "step": "x", "priority": 1, "argsinfo": {"a": 1}}]},
    {"M": [{"interface": "raid", "step": "x", "priority": 1}] * 501},
    {"M": [{"interface": "raid", "step": "x", "priority": 1, "argsinfo": {"a": {"description": "x" * 30000}}}] * 9},
])
def test_steps_of_an_agent_that_can_not_be(agent, deploy, task, steps):
    agent.reply = command("now", command_result={"deploy_steps": steps})

    with pytest.raises(IronicRulesError, match="agent"):
        deploy.continue_step(task, "deploy", {})


def clean(step="erase_devices"):
    return {"interface": "deploy", "step": step, "args": {}, "priority": 10}


def test_clean_steps_have_commands_of_their_own(agent, deploy, task):
    agent.reply = command("asked", command_result={"hardware_manager_version": {"M": "2"}, "clean_steps": {
        "M": [{**clean(), "abortable": True}]}})
    assert deploy.continue_step(task, "prepare_cleaning", {}) is None
    info, = deploy.in_band_steps(task, CLEANING)
    assert (info.name, info.priority, info.abortable, deploy.in_band_steps(task)) == (
        "deploy.erase_devices", 10, True, [])

    assert deploy.run_in_band(task, clean(), CLEANING) == "wait call-back"

    assert [started["name"] for started in agent.started] == ["clean.get_clean_steps", "clean.execute_clean_step"]
    assert agent.started[1]["params"]["clean_version"] == {"M": "2"}


@pytest.mark.parametrize("status", ["CLEAN_VERSION_MISMATCH", "VERSION_MISMATCH"])
def test_an_agent_with_other_hardware_managers_is_an_error_of_its_own(agent, deploy, task, status):
    agent.commands = [command("asked"), command("new", status, command_error={"details": "M is 2 now"})]

    with pytest.raises(AgentChanged, match="M is 2 now"):
        deploy.run_in_band(task, clean(), CLEANING)


def test_the_ramdisk_is_booted_again_where_a_step_requests_that(agent, deploy, task, monkeypatch):
    booted = []
    monkeypatch.setattr(in_band.ramdisk, "boot", lambda interface, task: booted.append(task.node.uuid))
    agent.reply = command("asked", command_result={"clean_steps": {"M": [
        {**clean(), "reboot_requested": True}, clean("other")]}})
    deploy.continue_step(task, "prepare_cleaning", {})
    internal = task.node.driver_internal_info
    internal[AGENT_LAST_COMMAND] = "asked"

    agent.commands = [command("asked"), command("done")]
    assert deploy.run_in_band(task, clean(), CLEANING) == "wait call-back"
    assert len(booted) == 1
    agent.commands = [command("of the new one")]
    assert deploy.run_in_band(task, clean(), CLEANING) is None
    assert (internal[AGENT_LAST_COMMAND], AGENT_REBOOTS in internal) == ("of the new one", False)
    agent.commands.append(command("next"))
    assert deploy.run_in_band(task, clean("other"), CLEANING) is None
    assert len(booted) == 1
