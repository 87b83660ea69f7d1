// Bundles the front end into the Python package: app.js, app.css, widget.js and the licences of what is in them.
import { readFile, readdir, writeFile } from "node:fs/promises";
import { build } from "esbuild";

const target = process.argv[2] ?? "../msdump/viewing/assets";
// Sentences with names in braces are filled in before they reach the page.
const words = { name: "words", setup: (building) => building.onLoad({ filter: /chinese\.json$/ }, async ({ path }) => {
  const entries = Object.entries(JSON.parse(await readFile(path, "utf8")));
  return { contents: JSON.stringify(Object.fromEntries(entries.filter(([text]) => !text.includes("{")))), loader: "json" };
}) };
const options = { plugins: [words],  outdir: target, bundle: true, minify: true, charset: "ascii", target: "es2022", legalComments: "none" };
await build({ ...options, entryPoints: ["src/app.js", "src/app.css"], format: "iife" });
await build({ ...options, entryPoints: ["src/widget.js"], format: "esm" });
const { dependencies } = JSON.parse(await readFile("package.json", "utf8"));
const names = [...Object.keys(dependencies), "@preact/signals-core"].sort();
const licences = await Promise.all(
  names.map(async (name) => {
    const folder = `node_modules/${name}`;
    const file = (await readdir(folder)).find((one) => /^licen[cs]e/i.test(one));
    const { version } = JSON.parse(await readFile(`${folder}/package.json`, "utf8"));
    return `${name} ${version}\n\n${(await readFile(`${folder}/${file}`, "utf8")).trim()}\n`;
  }),
);
await writeFile(`${target}/THIRD_PARTY.txt`, licences.join(`\n${"-".repeat(80)}\n\n`));
