"""The ledger: writes to the drafts of a task, and notes what each action has written and what was there before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ironic_rules.models import documents
from ironic_rules.models.draft import NodeDraft, PortDraft
from ironic_rules.models.rules import AS_WRITTEN, CAPABILITY, ITEM, PATH, PORT, TRAIT, OwnedValue
from ironic_rules.models.task import Task
from ironic_rules.rules import capabilities

CAPABILITIES = ("properties", "capabilities")
_CAPABILITIES = "/properties/capabilities"
MISSING: Any = object()


def find(doc: Any, tokens: tuple[str, ...]) -> Any:
    """Return the value at ``tokens``, ``MISSING`` if there is none."""
    try:
        return documents.get(doc, tokens)
    except documents.PointerError:
        return MISSING


class Ledger:
    """Writes for one action after the other.

    :ivar owned: what was written, in order
    :ivar rule: the UUID of the rule that writes
    :param is_kept: whether what is written is owned
    """

    def __init__(self, task: Task, is_kept: bool = True) -> None:
        self.task = task
        self.owned: list[OwnedValue] = []
        self._is_kept = is_kept
        self.rule = ""
        self._action = 0
        #: the capabilities that were parsed last, what they are, and whether that says how they are written
        self._parsed: tuple[Any, dict[str, Any], bool] = (None, {}, False)

    def begin(self, rule: str, action: int) -> None:
        """Note which action of which rule writes from now on."""
        self.rule, self._action = rule, action

    def _note(self, kind: str, place: str, **said: Any) -> None:
        if self._is_kept:
            self.owned.append(OwnedValue(self.rule, self._action, kind, place, **said))

    def read(self, tokens: tuple[str, ...], draft: NodeDraft | PortDraft | None = None) -> Any:
        """Return the value at a path of the node or a port, ``MISSING`` if there is none. Not to be changed."""
        return find((draft or self.task.node).current(tokens[0]), tokens[1:])

    def set_path(self, path: str, value: Any) -> None:
        """Set the value at a path of the node; missing objects along it are made.

        Where the path leads into a list, the value becomes a new item, as with "add" of JSON Patch.

        :raises IronicRulesError: as ``NodeDraft.write``
        """
        tokens = NodeDraft.path_tokens(path)
        if len(tokens) > 2 or tokens[-1:] == ("-",):
            parent = self.read(tokens[:-1])
            if isinstance(parent, list) or (tokens[-1] == "-" and parent is MISSING):
                self.insert(tokens[:-1], tokens[-1], value)
                return
        self._set(self.task.node, PATH, documents.format_pointer(tokens), path, tokens, value)

    def set_port_path(self, port: PortDraft, path: str, value: Any) -> None:
        """Set the value at a path of a port."""
        tokens = PortDraft.path_tokens(path)
        self._set(port, PORT, f"/{port.uuid}{documents.format_pointer(tokens)}", path, tokens, value)

    def _set(self, draft: NodeDraft | PortDraft, kind: str, place: str, path: str, tokens: tuple[str, ...],
             value: Any) -> None:
        before = self.read(tokens, draft)
        if before is not MISSING and documents.same(before, value):
            return
        made = _missing(draft.current(tokens[0]), tokens[1:])
        if self._is_kept:
            before = documents.clone(before)
        draft.write(path, value)
        if self._is_kept:
            # As the draft has it: it changes the case of some.
            value = documents.clone(self.read(tokens, draft))
        self._note(kind, place, written=value, made=made, **_before(before))

    def remove_path(self, path: str) -> None:
        """Remove the value at a path of the node; a field gets its default."""
        self._remove(self.task.node, PATH, "", path)

    def remove_port_path(self, port: PortDraft, path: str) -> None:
        """Remove the value at a path of a port."""
        self._remove(port, PORT, f"/{port.uuid}", path)

    def _remove(self, draft: NodeDraft | PortDraft, kind: str, prefix: str, path: str) -> None:
        tokens = draft.path_tokens(path, deleting=True)
        place = prefix + documents.format_pointer(tokens)
        before = documents.clone(self.read(tokens, draft))
        if before is MISSING:
            return
        if len(tokens) == 1:
            empty = draft.fields[tokens[0]].empty()
            self._set(draft, kind, place, path, tokens, empty)
        else:
            draft.delete(path)
            self._note(kind, place, is_set=False, **_before(before))

    def insert(self, tokens: tuple[str, ...], index: str, value: Any, *, unique: bool = False) -> None:
        """Add an item to the list at ``tokens``, which is made if it is missing or null.

        :param index: where; ``-`` for the end
        :param unique: do nothing if the list has the value
        :raises PointerError: there is something else than a list, or the index is beyond its end
        """
        where = documents.format_pointer(tokens)
        # An item may be written where a list may be.
        NodeDraft.path_tokens(where)
        found = self.read(tokens)
        if found is MISSING or found is None:
            made = _missing(self.task.node.current(tokens[0]), tokens[1:])
            if index not in ("-", "0"):
                raise documents.PointerError(f"{where}/{index}", "the index is beyond the end of the list")
            self.task.node.write(where, [value])
            # Without a number of items before: there was no list.
            self._note(ITEM, f"{where}/-", written=documents.clone(value), made=made, had_before=found is None)
            return
        if not isinstance(found, list):
            raise documents.PointerError(where, "not a list")
        same = sum(documents.same(value, item) for item in found)
        if unique and same:
            return
        if index == "-":
            self.task.node.extend(where, value)
        else:
            items = list(found)
            documents.put(items, (index,), value, insert=True)
            self.task.node.write(where, items)
        self._note(ITEM, f"{where}/{index}", written=documents.clone(value), had_before=True, before=same)

    def set_capability(self, name: str, value: Any) -> None:
        """Set one capability, and keep the others.

        :param value: None removes it
        :raises ActionError: it is a list or an object, or has a comma
        """
        found = self.read(CAPABILITIES)
        if self._parsed[0] is not found or not isinstance(found, str):
            pairs = capabilities.parse(None if found is MISSING else found)
            self._parsed = found, pairs, found is MISSING or capabilities.joined(found, pairs) == found
        _, pairs, is_plain = self._parsed
        before = pairs.get(name, MISSING)
        if value is None and before is MISSING:
            return
        text = None if value is None else capabilities.text_of(value)
        if text is not None and before is not MISSING and documents.same(before, text):
            return
        said = dict(_before(before))
        # So that taking back leaves what there was.
        if not is_plain:
            said |= {"before": found, "made": AS_WRITTEN}
        elif text is None:
            said["made"] = list(pairs).index(name)
        else:
            said["made"] = int(found is MISSING)
        self._note(CAPABILITY, name, is_set=text is not None, written=text, **said)
        if text is None:
            del pairs[name]
        else:
            pairs[name] = text
        changed = capabilities.joined(found, pairs)
        self.task.node.write(_CAPABILITIES, changed)
        self._parsed = changed, pairs, True

    def add_trait(self, name: str) -> None:
        """Add a trait.

        :raises InvalidParameterValue: not a valid trait name, or the node would have too many
        """
        if name not in self.task.node.current("traits"):
            self.task.node.add_trait(name)
            self._note(TRAIT, name, written=True, had_before=False)

    def remove_trait(self, name: str) -> None:
        """Remove a trait, if the node has it."""
        traits = self.task.node.current("traits")
        if name in traits:
            self.task.node.traits = set(traits) - {name}
            self._note(TRAIT, name, is_set=False, had_before=True)


def _missing(doc: Any, tokens: tuple[str, ...]) -> int:
    """Return how many objects have to be made for the value at ``tokens``."""
    for depth, token in enumerate(tokens[:-1]):
        found = find(doc, (token,))
        if found is MISSING:
            return len(tokens) - 1 - depth
        doc = found
    return 0


def _before(found: Any) -> Mapping[str, Any]:
    return {"had_before": found is not MISSING, "before": None if found is MISSING else found}

