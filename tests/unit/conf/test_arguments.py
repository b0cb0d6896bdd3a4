from __future__ import annotations

import pytest
from oslo_config import cfg

from ironic_rules.cmd import lifecycle
from ironic_rules.conf import arguments
from tests.walking import walking


def parsed(*argv: str) -> cfg.ConfigOpts:
    conf = cfg.ConfigOpts()
    conf.register_cli_opts(lifecycle.LISTEN_OPTS)
    arguments.parse(conf, argv, project="ironic-rules", default_config_files=[], default_config_dirs=[])
    return conf


@walking("argv, named", [
    (["--port", "99999"], "--port"), (["--port=-1"], "--port"), (["--port"], "--port"), (["--host", "a b"], "--host")])
def test_a_wrong_argument_is_named_as_it_is_typed(argv, named):
    with pytest.raises(arguments.WrongArguments) as caught:
        parsed(*argv)

    assert f"argument {named}: " in str(caught.value)
    assert "cli_" not in str(caught.value)


@pytest.mark.parametrize("argv", [
    ["--shell_completion", "bash"], ["--shell_completion=zsh"], ["--port", "1", "--shell_completion"]])
def test_shell_completion_is_no_argument(argv, capsys):
    with pytest.raises(arguments.WrongArguments, match="unrecognized arguments: --shell_completion"):
        parsed(*argv)
    with pytest.raises(SystemExit):
        parsed("--help")
    assert "completion" not in capsys.readouterr().out
