"""Built-in rules: from files to rules, or to a list of all problems."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from oslo_config import cfg

from ironic_rules import rules
from ironic_rules.conf import inspection
from ironic_rules.exceptions import ConfigurationError
from ironic_rules.inspection import rule_sets
from ironic_rules.rules import built_in, strict_yaml
from tests.unit.rules import world
from tests.walking import walking

UUID = "9d1b3f0a-6b0d-4c2e-8f0e-2f6f0a1f7c11"
RULE = "- actions: [{op: log, args: {msg: %s}}]\n"


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    path.chmod(0o640)
    return path


def load(path: Path, **options: Any) -> list[rules.Rule]:
    """Return the rules of a file or a folder."""
    return [rule for rule, _ in built_in.load(path, **options)]


def refusal(path: Path, **kwargs: Any) -> list[str]:
    """Return the lines of the refusal, without the header and the folder."""
    with pytest.raises(ConfigurationError) as caught:
        load(path, **kwargs)
    header, *lines = str(caught.value).splitlines()
    assert header == "The built-in inspection rules cannot be used:"
    return [line.replace(f"{path if path.is_dir() else path.parent}/", "") for line in lines]


def test_r02_a_file_has_a_list_of_rules(tmp_path: Path) -> None:
    loaded = load(write(tmp_path / "a.yaml", RULE % "one" + RULE % "two"))
    assert [rule.actions[0]["args"]["msg"] for rule in loaded] == ["one", "two"]
    assert [rule.built_in for rule in loaded] == [True, True]


def test_a_file_may_have_one_rule(tmp_path: Path) -> None:
    one, = load(write(tmp_path / "a.yaml", "priority: 5\nactions: [{op: log, args: [hi]}]\n"))
    assert one.priority == 5


@pytest.mark.parametrize("text", ["", "# nothing yet\n", "[]\n"])
def test_a_file_may_have_none(tmp_path: Path, text: str) -> None:
    assert load(write(tmp_path / "a.yaml", text)) == []


def test_a_directory_is_read_in_the_order_of_its_names(tmp_path: Path) -> None:
    for name in ("20-b.yaml", "10-a.yaml", ".30-hidden.yaml", "40-not.txt"):
        write(tmp_path / name, RULE % name)
    assert [rule.actions[0]["args"]["msg"] for rule in load(tmp_path)] == ["10-a.yaml", "20-b.yaml"]


def test_defaults_are_filled_in_but_no_scope(tmp_path: Path) -> None:
    one, = load(write(tmp_path / "a.yaml", RULE % "x"))
    assert (one.description, one.priority, one.phase, one.scope, one.sensitive, one.conditions) == (
        None, 0, "main", None, False, [])


def test_scopes_of_early_rules_are_refused_all_at_once(tmp_path: Path) -> None:
    text = "".join(f"- {{phase: {phase}, scope: {scope}, actions: [{{op: log, args: [x]}}]}}\n"
                   for phase, scope in (("early", "a"), ("main", "b"), ("early", "c"), ("early", "null")))
    with pytest.raises(ConfigurationError) as caught:
        load(write(tmp_path / "a.yaml", text))
    assert [line.partition(": ")[2].partition(":")[0] for line in str(caught.value).splitlines()[1:]] == [
        "/0/scope", "/2/scope"]


@pytest.mark.parametrize("priority", [-5, -1, 0, 9999, 10000, 1_000_000])
def test_r06_any_integer_is_a_priority(tmp_path: Path, priority: int) -> None:
    one, = load(write(tmp_path / "a.yaml", f"priority: {priority}\nactions: [{{op: log, args: [hi]}}]"))
    assert rules.compile(one).priority == priority


def test_r20_user_rules_of_equal_priority_run_first(tmp_path: Path) -> None:
    text = "".join(f"- {{priority: {priority}, actions: [{{op: log, args: [{name}]}}]}}\n"
                   for name, priority in [("c", 5), ("d", 5), ("first", 10000), ("last", -1)])
    own = [rules.compile(rule) for rule in load(write(tmp_path / "a.yaml", text))]
    stored = [world.compiled(world.rule(priority=5, position=position, actions=[{"op": "log", "args": [name]}]))
              for name, position in [("b", (1 << 31) - 1), ("a", 1)]]
    facts = world.facts()
    rules.RuleSet([*own, *stored]).run("main", facts)
    assert [text.rpartition(" ")[2] for _, text in facts.messages] == ["first", "a", "b", "c", "d", "last"]


def test_r05_the_uuid_depends_on_what_the_rule_says_and_not_on_where(tmp_path: Path) -> None:
    before = load(write(tmp_path / "a.yaml", RULE % "one" + RULE % "two"))
    text = RULE % "two" + RULE % "three" + "  priority: '0'\n" + RULE % "one"
    after = load(write(tmp_path / "b.yaml", text))
    assert {rule.uuid for rule in before} < {rule.uuid for rule in after}
    assert [rule.uuid for rule in before] == [
        "e58a8c01-e063-581d-a8f4-6a7afb9f29a7", "4148730a-c8c6-5ec9-b8e8-06a62f267dc2"]


def test_a_given_uuid_is_kept(tmp_path: Path) -> None:
    one, = load(write(tmp_path / "a.yaml", RULE % "x" + f"  uuid: {UUID.upper()}\n"))
    assert one.uuid == UUID


def test_the_uuid_of_a_sensitive_rule_tells_nothing_of_its_secrets(tmp_path: Path) -> None:
    found = {load(write(tmp_path / "a.yaml", RULE % secret + "  sensitive: true\n"))[0].uuid
             for secret in ("calvin", "admin")}
    assert len(found) == 1


@pytest.mark.parametrize(("text", "reason"), [
    (RULE % "x" * 2, "a.yaml: /1: the same rule as "),
    (RULE % "x" + f"  uuid: {UUID}\n" + RULE % "y" + f"  uuid: {UUID.upper()}\n", "this uuid is already that of "),
    (RULE % "x" + "  sensitive: true\n" + RULE % "y" + "  sensitive: true\n", "; give one of them a uuid"),
])
def test_what_is_there_twice_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    line, = refusal(write(tmp_path / "a.yaml", text))
    assert reason in line
    assert "a.yaml: /0" in line


def test_what_two_files_have_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "a.yaml", "actions: [{op: log, args: [hi]}]")
    write(tmp_path / "b.yaml", "- actions: [{op: log, args: [hi]}]")
    assert refusal(tmp_path) == ["b.yaml: /0: the same rule as a.yaml: /"]


def test_a_file_whose_name_ends_with_yml_is_not_passed_over(tmp_path: Path) -> None:
    write(tmp_path / "a.yml", RULE % "x")
    assert refusal(tmp_path) == ["a.yml: it is not read, its name must end with .yaml"]


def test_r03_every_problem_of_every_file_is_told_with_its_place(tmp_path: Path) -> None:
    write(tmp_path / "a.yaml", "- {actions: []}\n"
                               "- {conditions: [{op: eqq, args: [1, 1]}], actions: [{op: log}]}\n- 7\n")
    write(tmp_path / "b.yaml", "actions: [{op: log, args: ['{inventory[cpu}']}]\nbuilt_in: true\n")
    write(tmp_path / "c.yaml", "- actions: [\n")
    write(tmp_path / "d.yaml", "a text")
    (tmp_path / "e.yaml").write_bytes(b"- \xff\n")
    (tmp_path / "f.yaml").mkdir()
    lines = refusal(tmp_path)
    assert [line for line in lines if not line.startswith(("b.yaml", "c.yaml"))] == [
        "a.yaml: /2: a rule is an object",
        "d.yaml: must be a list of rules, or one rule",
        "e.yaml: not UTF-8 at byte 2",
        "f.yaml: not a file",
        "a.yaml: /0/actions: must have at least one action",
        "a.yaml: /1/conditions/0/op: there is no such operator; did you mean 'eq'?",
        "a.yaml: /1/actions/0/args: missing: msg",
    ]
    assert any(line.startswith("b.yaml: /built_in: unknown field") for line in lines)
    assert any(line.startswith("b.yaml: /actions/0/args/0: column 15: ']' is missing") for line in lines)
    assert any(line.startswith("c.yaml: line 2, column 1: ") for line in lines)


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    assert refusal(tmp_path / "nosuch.yaml") == ["nosuch.yaml: there is no such file"]


def test_a_large_file_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(built_in, "MAX_FILE_BYTES", 100)
    assert refusal(write(tmp_path / "a.yaml", "#" * 101)) == ["a.yaml: longer than 100 bytes"]


def test_limits_hold_for_built_in_rules(tmp_path: Path) -> None:
    path = write(tmp_path / "a.yaml", "actions: [{op: log, args: [hi]}, {op: log, args: [ho]}]")
    assert refusal(path, limits=rules.Limits(actions=1)) == ["a.yaml: /actions: more than 1 items"]


@pytest.mark.parametrize("identity", ["", f"uuid: {UUID}", "sensitive: true"])
@pytest.mark.parametrize(("fits", "too_large"), [(2**64 - 1, 2**64), (-(2**63), -(2**63) - 1)])
def test_integers_have_64_bits(tmp_path: Path, fits: int, too_large: int, identity: str) -> None:
    """The API could not show others; nothing else may be what finds them, such as a UUID that is computed."""
    def file(number: int) -> Path:
        return write(tmp_path / "a.yaml", f"""
priority: {number}
conditions: [{{op: eq, args: [1, [{number}]], loop: {{a: {number}}}}}]
actions: [{{op: set-attribute, args: {{path: /extra/n, value: {{a: {number}}}}}}}]
{identity}
""")

    assert load(file(fits))[0].priority == fits
    assert refusal(file(too_large)) == [
        f"a.yaml: {where}: must be an integer of 64 bits: from -2^63 to 2^64-1" for where in (
            "/priority", "/conditions/0/loop/a", "/conditions/0/args/1/0", "/actions/0/args/value/a")]


def test_no_problem_quotes_a_value(tmp_path: Path) -> None:
    path = write(tmp_path / "a.yaml", "- {actions: [{op: log, args: {msg: s3cret, level: s3cret}}]}\n"
                                      "- {description: [s3cret], actions: [{op: fail, args: ['{s3cret']}]}\n")
    bad = write(tmp_path / "b.yaml", "- {actions: [{op: log, args: s3cret]}")
    assert "s3cret" not in "".join([*refusal(path), *refusal(bad)])


@walking("text, value", [
    ("[52:54:00:12:34:56, 10:20]", ["52:54:00:12:34:56", "10:20"]),
    ("[2024-01-02, 2024-01-02 10:00:00]", ["2024-01-02", "2024-01-02 10:00:00"]),
    ("[1, -7, 0x10, 0o17, 1_000, 1.5, -.5, 1e3, true, no, ~, '', '8']",
     [1, -7, 16, "0o17", 1000, 1.5, -0.5, "1e3", True, False, None, "", "8"]),
    ("{a: &x {b: 1}, c: *x}", {"a": {"b": 1}, "c": {"b": 1}}),
    ("", None),
])
def test_yaml_gives_plain_values(text: str, value: Any) -> None:
    assert strict_yaml.load(text) == value


@walking("text, reason", [
    ("a: 1\na: 2", "line 2, column 1: duplicate key"),
    ("- op: !eq\n", "line 1, column 7: tags are not supported; a text that begins with '!' must be quoted"),
    ("- !!python/object/apply:os.system [ls]", "tags are not supported"),
    ("- !!binary aGk=", "tags are not supported"),
    ("- !!timestamp 2024-01-01", "tags are not supported"),
    ("{<<: {a: 1}}", "merge keys are not supported"),
    ("{1: a}", "a key must be a string"), ("{[a]: b}", "a key must be a string"),
    ("--- 1\n--- 2", "line 2, column 1: but found another document"),
    ("a: \x07", "characters are not allowed"),
    ("- &a [*a]", "more than"), ("- !!int x", "cannot be read"), ("\t- a", "line 1, column 1"),
    ("\n".join([f"x: &x0 [{'a, ' * 9}a]", *(f"y{i}: &x{i} [{f'*x{i - 1}, ' * 9}a]" for i in range(1, 20))]),
     "more than 1000000 values"),
])
def test_yaml_that_is_more_or_less_than_json_is_refused(text: str, reason: str) -> None:
    with pytest.raises(strict_yaml.BadYaml) as caught:
        strict_yaml.load(text)
    assert reason in str(caught.value)


@pytest.mark.parametrize(("depth", "reason"), [
    (20, "/0/actions/0/args/0: "), (190, "/0/actions/0/args"), (900, "nested deeper than 200 levels"),
    (100_000, "nested deeper than 200 levels"),
])
def test_deep_yaml_is_refused(tmp_path: Path, depth: int, reason: str) -> None:
    line, = refusal(write(tmp_path / "a.yaml", f"- actions: [{{op: log, args: {'[' * depth}{']' * depth}}}]"))
    assert reason in line


@pytest.fixture
def conf() -> Iterator[cfg.ConfigOpts]:
    made = cfg.ConfigOpts()
    made.register_opts(inspection.RULES_OPTS, group=inspection.RULES_GROUP)
    made([], default_config_files=[])
    yield made
    # oslo.config keeps overrides in the module-level groups: they would outlive this instance.
    for option in inspection.RULES_OPTS:
        made.clear_override(option.dest, group="inspection_rules")


def test_r80_no_file_is_no_rules(conf: cfg.ConfigOpts) -> None:
    assert rule_sets.prepare_rules(conf) == rule_sets.RuleSettings()


@pytest.mark.parametrize("name", ["built_in", "built_in_rules"])
def test_r80_the_option_names_the_file(tmp_path: Path, name: str) -> None:
    rules_file = write(tmp_path / "a.yaml", RULE % "x")
    config = write(tmp_path / "c.conf", f"[inspection_rules]\n{name} = {rules_file}\ndefault_scope = lab\n")
    conf = cfg.ConfigOpts()
    conf.register_opts(inspection.RULES_OPTS, group=inspection.RULES_GROUP)
    conf([], default_config_files=[str(config)])
    settings = rule_sets.prepare_rules(conf)
    assert [rule.actions[0]["args"] for rule in settings.built_in] == [{"msg": "x"}]
    assert (settings.default_scope, settings.built_in[0].scope) == ("lab", None)


def test_a_file_that_others_can_write_is_warned_of(
        tmp_path: Path, conf: cfg.ConfigOpts, caplog: pytest.LogCaptureFixture) -> None:
    path = write(tmp_path / "a.yaml", RULE % "x")
    tmp_path.chmod(0o700)
    conf.set_override("built_in", str(tmp_path), "inspection_rules")
    with caplog.at_level(logging.WARNING):
        rule_sets.prepare_rules(conf)
        assert str(path) not in caplog.text
        path.chmod(0o666)
        rule_sets.prepare_rules(conf)
    # Other libraries' threads may log, too.
    message, = (record.getMessage() for record in caplog.records if record.name.startswith("ironic_rules"))
    assert str(path) in message


def test_the_defaults_of_the_options_are_those_of_the_engine(conf: cfg.ConfigOpts) -> None:
    assert rule_sets.limits(conf) == rules.Limits()


def test_every_limit_but_that_of_regexes_has_an_option(conf: cfg.ConfigOpts) -> None:
    for name in ("conditions", "actions", "loop_items", "depth", "text_size", "result_size"):
        conf.set_override(f"max_{name}", 1 if "size" not in name else 256, "inspection_rules")
    conf.set_override("max_written_size", 65536, "inspection_rules")
    conf.set_override("max_regex_subject", 256, "inspection_rules")
    found = rule_sets.limits(conf)
    assert found == rules.Limits(conditions=1, actions=1, loop_items=1, depth=1, text=256, result=256, subject=256,
                                 written=65536)


def test_a_host_that_is_none_stops_the_start(conf: cfg.ConfigOpts) -> None:
    conf.set_override("api_call_allowed_hosts", ["http://cmdb"], "inspection_rules")
    with pytest.raises(ConfigurationError, match="api_call_allowed_hosts"):
        rule_sets.prepare_rules(conf)


@pytest.mark.parametrize(("text", "expected"), [
    ("  bundle: racks\n", "/0/bundle: a built-in rule has no bundle"),
    ("  max_nodes: 3\n", "/0/max_nodes: the nodes of a built-in rule are not counted"),
    ("  name: one\n" + RULE % "y" + "  name: one\n", "/1: this name is already that of "),
])
def test_what_only_stored_rules_can_have_is_refused(tmp_path: Path, text: str, expected: str) -> None:
    with pytest.raises(ConfigurationError, match=expected):
        load(write(tmp_path / "a.yaml", RULE % "x" + text))


def test_a_built_in_rule_can_have_a_name_and_be_disabled(tmp_path: Path) -> None:
    one, = load(write(tmp_path / "a.yaml", RULE % "x" + "  name: one\n  enabled: false\n"))
    assert (one.name, one.enabled) == ("one", False)
