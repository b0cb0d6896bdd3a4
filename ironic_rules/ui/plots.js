// Plots in plain SVG and elements: each part has its numbers as a title, and a table beside it for those who cannot see it.

import {el} from "./dom.js";

/** Return one bar of several parts, beside each other.
 * @param {Array<{text, count, kind, to}>} parts `kind`: good, busy, bad or plain; `to`: where a click leads */
export function stackedBar(label, parts) {
  const sum = parts.reduce((total, {count}) => total + count, 0);
  const seen = {};
  // Parts of one kind beside each other differ in lightness.
  const shade = (kind) => Math.max(0.35, 1.25 - 0.25 * (seen[kind] = (seen[kind] ?? 0) + 1));
  return el("div", {class: "stacked-bar", role: "group", "aria-label": label}, parts.map(({text, count, kind, to}) => el("a", {
    class: `fill-${kind}`, href: to, style: {"flex-grow": count / sum, opacity: shade(kind)}, title: `${count.toLocaleString()} ${text}`,
    "aria-label": `${count.toLocaleString()} ${text}`})));
}

/** Return columns of stacked parts, as a plot over time.
 * @param {Array<{text, counts}>} columns `counts` are numbers in the order of `kinds`
 * @param {Array<[kind, text]>} kinds */
export function stackedColumns(label, columns, kinds) {
  const [width, height] = [columns.length * 10, 64];
  const most = Math.max(1, ...columns.map(({counts}) => counts.reduce((sum, count) => sum + count, 0)));
  const drawn = columns.map(({text, counts}, place) => {
    let top = height;
    return el("svg:g", {}, el("svg:title", {}, `${text}: ${kinds.map(([, name], at) => `${counts[at].toLocaleString()} ${name}`).join(", ")}`),
      el("svg:rect", {x: place * 10, y: 0, width: 10, height, class: "plot-space"}),
      counts.map((count, at) => {
        const part = count === 0 ? 0 : Math.max(1.5, count / most * (height - 2));
        top -= part;
        return part > 0 && el("svg:rect", {x: place * 10 + 1, y: top, width: 8, height: part, class: `fill-${kinds[at][0]}`});
      }));
  });
  return el("figure", {class: "plot"},
    el("svg:svg", {viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", role: "img", "aria-label": label}, drawn),
    el("figcaption", {class: "dim"}, el("span", {}, columns[0]?.text), el("span", {}, `at most ${most.toLocaleString()} an hour`),
      el("span", {}, columns.at(-1)?.text)),
    el("table", {class: "unseen"}, el("caption", {}, label),
      el("thead", {}, el("tr", {}, el("th", {scope: "col"}, "Hour"), kinds.map(([, name]) => el("th", {scope: "col"}, name)))),
      el("tbody", {}, columns.map(({text, counts}) => el("tr", {}, el("th", {scope: "row"}, text), counts.map((count) => el("td", {}, count)))))));
}

/** Return a list of links, each with a bar of its share; entries are {text, count, to, isCurrent, title}. */
export function bars(label, entries) {
  const most = Math.max(1, ...entries.map(({count}) => count));
  return el("ul", {class: "bars", "aria-label": label}, entries.map(({text, count, to, isCurrent, title}) => el("li", {},
    el("a", {href: to, title, "aria-current": isCurrent ? "true" : null},
      el("span", {class: "bar-fill", "aria-hidden": "true", style: {"inline-size": `${count / most * 100}%`}}),
      el("span", {class: "bar-text", title: typeof text === "string" ? text : null}, text), " ", el("span", {class: "num"}, count.toLocaleString())))));
}

/** Return columns of numbers that are links, lowest first; entries as those of `bars`. */
export function histogram(label, entries) {
  const most = Math.max(1, ...entries.map(({count}) => count));
  return [el("ul", {class: "histogram", "aria-label": label}, entries.map(({text, count, to, isCurrent}) => el("li", {},
    el("a", {href: to, title: `${text}: ${count.toLocaleString()}`, "aria-label": `${text}: ${count.toLocaleString()} nodes`,
      "aria-current": isCurrent ? "true" : null},
    el("span", {style: {"block-size": `${count === 0 ? 0 : Math.max(4, count / most * 100)}%`}}))))),
  el("p", {class: "histogram-ends dim", "aria-hidden": "true"}, el("span", {}, entries[0].text), el("span", {}, entries.at(-1).text))];
}
