// Writes ironic_rules/ui/vendor/editor.js, the licences of what is in it, and editor.json with versions and hash.
// "npm ci && npm run bundle" in this folder gives the same bytes each time: see doc/source/contributor/page-editor.rst.

import {createHash} from "node:crypto";
import {mkdirSync, readFileSync, writeFileSync} from "node:fs";
import {dirname, join} from "node:path";
import {fileURLToPath} from "node:url";
import {build} from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const vendor = join(here, "../../ironic_rules/ui/vendor");

const {outputFiles: [bundle], metafile} = await build({
  absWorkingDir: here, entryPoints: ["editor.mjs"], bundle: true, format: "esm", minify: true, target: "es2022",
  legalComments: "none", write: false, metafile: true});

const folders = new Set(Object.keys(metafile.inputs).map((path) =>
  /^node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0]).filter(Boolean));
const packages = [...folders].sort().map((folder) => {
  const {name, version, license} = JSON.parse(readFileSync(join(here, folder, "package.json"), "utf8"));
  return {name, version, license, text: readFileSync(join(here, folder, "LICENSE"), "utf8").trim()};
});

const names = packages.map(({name, version, license}) => ` * ${name} ${version} (${license})`);
const banner = `/*! Bundled by tools/editor from:\n${names.join("\n")}\n * Their licences are in editor-licences.txt. */\n`;
const content = banner + bundle.text;
const licences = packages.map(({name, version, text}) => `${name} ${version}\n\n${text}\n`).join(`\n${"-".repeat(78)}\n\n`);
const sum = {
  file: "editor.js",
  sha256: createHash("sha256").update(content).digest("hex"),
  packages: packages.map(({name, version, license}) => ({name, version, license})),
};

mkdirSync(vendor, {recursive: true});
writeFileSync(join(vendor, "editor.js"), content);
writeFileSync(join(vendor, "editor-licences.txt"), licences);
writeFileSync(join(vendor, "editor.json"), JSON.stringify(sum, null, 2) + "\n");
console.log(sum.sha256);
