// What the page uses of CodeMirror and of yaml, in one file.

export {Compartment, EditorState} from "@codemirror/state";
export {
  EditorView, drawSelection, highlightActiveLine, highlightActiveLineGutter, keymap, lineNumbers, tooltips,
} from "@codemirror/view";
export {defaultKeymap, history, historyKeymap, indentLess, indentMore} from "@codemirror/commands";
export {HighlightStyle, bracketMatching, indentOnInput, indentUnit, syntaxHighlighting} from "@codemirror/language";
export {acceptCompletion, autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap, startCompletion}
  from "@codemirror/autocomplete";
export {lintGutter, lintKeymap, setDiagnostics} from "@codemirror/lint";
export {search, searchKeymap} from "@codemirror/search";
export {yaml} from "@codemirror/lang-yaml";
export {tags} from "@lezer/highlight";
export {LineCounter, isMap, isScalar, isSeq, parseDocument, stringify} from "yaml";
