// Writes ironic_rules/ui/vendor/icons.svg, its licence, and icons.json with the version, the names and the hash.
// "npm ci && npm run sprite" in this folder gives the same bytes each time; a new icon is a name in NAMES.

import {createHash} from "node:crypto";
import {readFileSync, writeFileSync} from "node:fs";
import {dirname, join} from "node:path";
import {fileURLToPath} from "node:url";

const NAMES = ["arrow-down", "arrow-up", "ban", "book-open", "box", "check", "chart-column", "chevron-down", "chevron-left",
  "chevron-right", "chevron-up", "circle", "circle-alert", "circle-check", "circle-dot", "circle-question-mark", "clock", "columns-3",
  "copy", "download", "ellipsis", "ethernet-port", "external-link", "eye", "eye-off", "file-text", "git-compare", "hard-drive",
  "history", "inbox", "info", "key-round", "layers", "list", "list-filter", "log-out", "memory-stick", "microchip", "monitor", "moon",
  "network", "pencil", "play", "plus", "power", "power-off", "printer", "refresh-cw", "rotate-ccw", "rotate-cw", "scale", "search",
  "server", "settings", "square-check", "sun", "sun-moon", "tag", "trash-2", "triangle-alert", "undo-2", "user", "workflow", "wrench", "x"];

const here = dirname(fileURLToPath(import.meta.url));
const vendor = join(here, "../../ironic_rules/ui/vendor");
const source = join(here, "node_modules/lucide-static");
const {name, version, license} = JSON.parse(readFileSync(join(source, "package.json"), "utf8"));

const symbols = NAMES.map((each) => {
  const [, inner] = /<svg[^>]*>([\s\S]*)<\/svg>/.exec(readFileSync(join(source, `icons/${each}.svg`), "utf8"));
  return `<symbol id="${each}" viewBox="0 0 24 24">${inner.replace(/\s*\n\s*/g, "").replace(/ \/>/g, "/>")}</symbol>\n`;
});
const content = `<!-- ${name} ${version} (${license}), see icons-licence.txt; written by tools/icons -->\n`
  + `<svg xmlns="http://www.w3.org/2000/svg">\n${symbols.join("")}</svg>\n`;
const sum = {file: "icons.svg", sha256: createHash("sha256").update(content).digest("hex"),
  packages: [{name, version, license}], names: NAMES};

writeFileSync(join(vendor, "icons.svg"), content);
writeFileSync(join(vendor, "icons-licence.txt"), `${name} ${version}\n\n${readFileSync(join(source, "LICENSE"), "utf8").trim()}\n`);
writeFileSync(join(vendor, "icons.json"), JSON.stringify(sum, null, 2) + "\n");
console.log(sum.sha256);
