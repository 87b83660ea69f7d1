// Bundles the front end into the Python package: app.js, app.css and the licences of what is in them.
import { readFile, readdir, writeFile } from "node:fs/promises";
import { build } from "esbuild";

const target = process.argv[2] ?? "../msdump/viewing/assets";
await build({
  entryPoints: ["src/app.js", "src/app.css"],
  outdir: target,
  bundle: true,
  minify: true,
  charset: "ascii",
  format: "iife",
  target: "es2022",
  legalComments: "none",
});
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
