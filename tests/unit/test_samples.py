"""The sample files in ``etc/`` match the code. After a change: ``tox -e genconfig,genpolicy``."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from oslo_config import cfg, generator
from oslo_policy import generator as policy_generator

from ironic_rules.conf import opts

ROOT = Path(__file__).resolve().parents[2]
ETC = ROOT / "etc" / "ironic-rules"
OWN_NAMESPACE = "ironic_rules"

BLOCK = re.compile(r"^#\n# From (?P<namespace>\S+)\n#\n", re.MULTILINE)
SECTION = re.compile(r"^\[(?P<section>\S+)\]\n", re.MULTILINE)


def blocks(sample: str) -> dict[tuple[str, str], str]:
    """Return the text of a sample by ``(section, namespace)``."""
    found = {}
    parts = SECTION.split(sample)
    for section, body in zip(parts[1::2], parts[2::2], strict=True):
        pieces = BLOCK.split(body)
        found.update({(section, name): text.strip() for name, text in zip(pieces[1::2], pieces[2::2], strict=True)})
    return found


def generated(tmp_path: Path, config_file: str) -> str:
    """Run oslo.config's generator in this process and return what it writes."""
    output = tmp_path / "sample"
    conf = cfg.ConfigOpts()
    generator.register_cli_opts(conf)
    conf(["--config-file", str(ETC / config_file), "--output-file", str(output)], default_config_files=[])
    generator.generate(conf)
    return output.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def sample() -> dict[tuple[str, str], str]:
    return blocks((ETC / "ironic-rules.conf.sample").read_text(encoding="utf-8"))


def test_the_configuration_sample_is_what_the_generator_writes(tmp_path, sample):
    fresh = blocks(generated(tmp_path, "ironic-rules-config-generator.conf"))

    # The options of the libraries change with their versions; their sections only need to exist.
    assert {key: text for key, text in sample.items() if key[1] == OWN_NAMESPACE} == {
        key: text for key, text in fresh.items() if key[1] == OWN_NAMESPACE}
    assert {name for _, name in sample} == {name for _, name in fresh}


def test_the_configuration_sample_shows_every_option(sample):
    missing = [
        f"[{group}]{option.name}" for group, options in opts.list_opts() for option in options
        if not re.search(rf"^#{re.escape(option.dest)} =", sample[group, OWN_NAMESPACE], re.MULTILINE)]

    assert missing == []


def test_the_configuration_sample_names_no_machine(sample):
    own = "\n".join(text for (_, name), text in sample.items() if name == OWN_NAMESPACE)
    host = re.search(r"^#host = (.*)$", own, re.MULTILINE)

    assert host and host[1] == "localhost"
    assert str(Path.home()) not in own


def test_the_policy_sample_is_what_the_generator_writes(tmp_path):
    output = tmp_path / "policy.yaml"

    policy_generator.generate_sample(
        args=["--config-file", str(ETC / "ironic-rules-policy-generator.conf"), "--output-file", str(output)],
        conf=cfg.ConfigOpts())

    assert (ETC / "policy.yaml.sample").read_text(encoding="utf-8") == output.read_text(encoding="utf-8")


def test_the_policy_sample_overrides_nothing():
    assert yaml.safe_load((ETC / "policy.yaml.sample").read_text(encoding="utf-8")) is None
