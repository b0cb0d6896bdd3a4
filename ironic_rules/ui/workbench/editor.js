// The editor of a rule: CodeMirror in a shadow root, because the page's policy allows it no <style> elements, and in a
// shadow root it uses adopted style sheets.

import {
  EditorState, EditorView, HighlightStyle, acceptCompletion, autocompletion, bracketMatching, closeBrackets,
  closeBracketsKeymap, completionKeymap, defaultKeymap, drawSelection, highlightActiveLine, highlightActiveLineGutter,
  history, historyKeymap, indentOnInput, indentUnit, keymap, lineNumbers, lintGutter, lintKeymap, search, searchKeymap,
  setDiagnostics, syntaxHighlighting, tags, tooltips, yaml,
} from "../vendor/editor.js";
import {el} from "../dom.js";

// The colours are those of the page; custom properties reach into the shadow root.
const THEME = EditorView.theme({
  "&": {color: "var(--ink)", backgroundColor: "var(--raised)", fontSize: "13px", height: "100%"},
  "&.cm-focused": {outline: "2px solid var(--focus)", outlineOffset: "-2px"},
  ".cm-content": {fontFamily: "var(--mono)", caretColor: "var(--ink)", padding: "6px 0"},
  ".cm-scroller": {overflow: "auto", fontFamily: "var(--mono)", lineHeight: "1.5"},
  ".cm-cursor": {borderLeftColor: "var(--ink)"},
  ".cm-gutters": {backgroundColor: "var(--sunk)", color: "var(--dim)", border: "0"},
  ".cm-activeLine, .cm-activeLineGutter": {backgroundColor: "color-mix(in srgb, var(--accent) 8%, transparent)"},
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground":
    {background: "color-mix(in srgb, var(--accent) 25%, transparent)"},
  ".cm-tooltip": {backgroundColor: "var(--raised)", color: "var(--ink)", border: "1px solid var(--line)"},
  ".cm-tooltip-autocomplete ul li[aria-selected]": {backgroundColor: "var(--accent)", color: "var(--on-accent)"},
  ".cm-tooltip.cm-completionInfo": {padding: "6px 9px", maxWidth: "28rem", whiteSpace: "pre-wrap"},
  ".cm-completionDetail": {color: "inherit", opacity: "0.75", fontStyle: "normal"},
  ".cm-panels": {backgroundColor: "var(--sunk)", color: "var(--ink)"},
  ".cm-diagnostic": {fontFamily: "inherit"},
  ".cm-diagnosticAction": {font: "inherit", color: "var(--on-accent)", backgroundColor: "var(--accent)"},
  ".cm-lintRange-error": {backgroundImage: "none", textDecoration: "underline wavy var(--bad)"},
  ".cm-lintRange-warning": {backgroundImage: "none", textDecoration: "underline wavy var(--busy)"},
  ".cm-lint-marker": {width: "0.8em", height: "0.8em", content: "none", borderRadius: "50%", margin: "0.25em 0"},
  ".cm-lint-marker-error": {backgroundColor: "var(--bad)", borderRadius: "0"},
  ".cm-lint-marker-warning": {backgroundColor: "var(--busy)"},
  ".cm-matchingBracket": {backgroundColor: "color-mix(in srgb, var(--accent) 25%, transparent) !important"},
});
const COLOURS = HighlightStyle.define([
  {tag: [tags.propertyName, tags.definition(tags.propertyName)], color: "var(--link)"},
  {tag: [tags.string, tags.special(tags.string)], color: "var(--good)"},
  {tag: [tags.number, tags.bool, tags.null, tags.keyword], color: "var(--busy)"},
  {tag: tags.comment, color: "var(--dim)", fontStyle: "italic"},
]);

// Text typed over a selection. The browser would insert it by markup with style attributes, which the policy refuses.
const REPLACING = EditorView.domEventHandlers({beforeinput(event, view) {
  const {from, to} = view.state.selection.main;
  if (event.inputType !== "insertText" || !event.data || from === to || view.composing || event.isComposing) return false;
  const text = event.data;
  const plain = () => view.state.update({changes: {from, to, insert: text}, selection: {anchor: from + text.length},
    userEvent: "input.type", scrollIntoView: true});
  event.preventDefault();
  if (!view.state.facet(EditorView.inputHandler).some((handle) => handle(view, from, to, text, plain))) view.dispatch(plain());
  return true;
}});

export class RuleEditor {
  /** @param {string} text
   * @param {function} changed called with the text when it has changed
   * @param {function} complete a source of completions */
  constructor(text, changed, complete) {
    this.element = el("div", {class: "rule-editor"});
    const root = this.element.attachShadow({mode: "open"});
    const holder = el("div", {style: {height: "100%"}});
    root.append(holder);
    const updated = EditorView.updateListener.of((update) => {
      if (update.docChanged) changed(this.text);
    });
    // The keys of completion and Escape come first. Tab completes, and otherwise leaves the editor, as everywhere.
    const extensions = [
      lineNumbers(), lintGutter(), highlightActiveLine(), highlightActiveLineGutter(), drawSelection(), history(),
      indentOnInput(), indentUnit.of("  "), EditorState.tabSize.of(2), bracketMatching(), closeBrackets(), search({top: true}),
      yaml(), syntaxHighlighting(COLOURS), THEME, tooltips({position: "fixed"}), EditorView.lineWrapping,
      autocompletion({override: [complete], icons: false, activateOnTypingDelay: 60, maxRenderedOptions: 100}),
      keymap.of([{key: "Tab", run: acceptCompletion}, ...completionKeymap, ...closeBracketsKeymap, ...defaultKeymap,
        ...historyKeymap, ...searchKeymap, ...lintKeymap]),
      EditorView.contentAttributes.of({"aria-label": "Rule, as YAML or JSON", spellcheck: "false", autocapitalize: "off"}),
      REPLACING, updated,
    ];
    this._view = new EditorView({state: EditorState.create({doc: text, extensions}), parent: holder, root});
    this._extensions = extensions;
  }

  get text() {
    return this._view.state.doc.toString();
  }

  /** Replace the text and forget what undo would bring back: it is another rule. */
  open(text) {
    this._view.setState(EditorState.create({doc: text, extensions: this._extensions}));
  }

  /** Replace {from, to} by `insert`; undo brings it back. The cursor comes after it. */
  change({from, to, insert}) {
    this._view.dispatch({changes: {from, to, insert}, selection: {anchor: from + insert.length}, scrollIntoView: true});
  }

  /** Mark what is wrong, under its line.
   * @param {Array} problems {from, to, severity: "error" | "warning", text, mend: {name, insert} | null} */
  mark(problems) {
    const length = this._view.state.doc.length;
    const diagnostics = problems.map(({from, to, severity, text, mend}) => ({
      from: Math.min(from, length), to: Math.min(Math.max(to, from), length), severity, message: text,
      actions: mend ? [{name: mend.name, apply: () => this.change(mend)}] : []}));
    this._view.dispatch(setDiagnostics(this._view.state, diagnostics));
  }

  /** Select a place and go there. */
  goTo(from, to) {
    const length = this._view.state.doc.length;
    this._view.dispatch({
      selection: {anchor: Math.min(from, length), head: Math.min(to, length)}, scrollIntoView: true});
    this._view.focus();
  }

  focus() {
    this._view.focus();
  }

  close() {
    this._view.destroy();
  }
}
