"""Every option of the service has a help text and a default that works on a laptop."""

from __future__ import annotations

import collections
import importlib
from collections.abc import Iterator
from pathlib import Path

from oslo_config import cfg, types

from ironic_rules import conf as service_conf
from ironic_rules.conf import opts
from tests.walking import walking

OPTIONS = [(group, option) for group, options in opts.list_opts() for option in options]

#: A bounded wait, size or count needs a lower bound; these types have numbers that may be unbounded.
NUMBERS = (types.Integer, types.Float)


def unhelpful(group: str, option: cfg.Opt) -> Iterator[str]:
    """Report an option whose help is not a sentence."""
    text = option.help or ""
    if not (text[:1].isupper() or text[:1] in ("'", "/", "$")) or not text.endswith("."):
        yield f"[{group}]{option.name}: {text!r}"


def unbounded(group: str, option: cfg.Opt) -> Iterator[str]:
    """Report an option that accepts any negative number."""
    if isinstance(option.type, NUMBERS) and option.type.min is None:
        yield f"[{group}]{option.name}: {option.type!r}"


def invalid(conf: cfg.ConfigOpts, group: str, option: cfg.Opt) -> Iterator[str]:
    """Report an option whose default cannot be read, or that has a default although it is required."""
    try:
        value = conf[option.name] if group == "DEFAULT" else conf[group][option.name]
    except (ValueError, cfg.Error) as exc:
        yield f"[{group}]{option.name}: {exc}"
    else:
        if option.required and value is not None:
            yield f"[{group}]{option.name}: is required and has the default {value!r}"


def test_every_help_is_a_sentence():
    assert OPTIONS
    assert [problem for one in OPTIONS for problem in unhelpful(*one)] == []


def test_every_number_has_a_lower_bound():
    assert [problem for one in OPTIONS for problem in unbounded(*one)] == []


def test_every_default_is_valid():
    conf = cfg.ConfigOpts()
    service_conf.register_opts(conf)
    conf([], default_config_files=[], default_config_dirs=[])

    assert [problem for one in OPTIONS for problem in invalid(conf, *one)] == []


@walking("text", [None, "", "a sentence.", "No sentence"])
def test_a_help_that_is_no_sentence_is_found(text):
    assert list(unhelpful("g", cfg.StrOpt("a", help=text))) == [f"[g]a: {text or ''!r}"]


@walking("option", [cfg.IntOpt("a"), cfg.FloatOpt("a", max=1)])
def test_a_number_without_a_lower_bound_is_found(option):
    assert list(unbounded("g", option)) == [f"[g]a: {option.type!r}"]


def test_a_default_that_leads_nowhere_is_found():
    option = cfg.StrOpt("a", default="$nowhere/x")
    conf = cfg.ConfigOpts()
    conf.register_opt(option)
    conf([], default_config_files=[], default_config_dirs=[])

    problem, = invalid(conf, "DEFAULT", option)

    assert problem.startswith("[DEFAULT]a: ")


def test_every_option_is_registered_once():
    counts = collections.Counter((group, option.dest) for group, option in OPTIONS)

    assert [name for name, count in counts.items() if count > 1] == []


def test_every_group_of_the_modules_is_listed():
    modules = [importlib.import_module(f"ironic_rules.conf.{path.stem}")
               for path in Path(service_conf.__file__).parent.glob("*.py") if path.stem != "__init__"]
    lists = [value for module in modules for name, value in vars(module).items()
             if name == "OPTS" or (name.endswith("_OPTS") and name not in ("LIBRARY_OPTS", "TARGET_OPTS"))]

    assert len(lists) > 10
    assert [options for options in lists if not any(options is listed for _, listed in service_conf.GROUPS)] == []
