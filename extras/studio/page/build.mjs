// Builds the page into the directory that is named: one script, one style sheet, the HTML that loads them;
// and beside it, in tests/, what `node --test` runs.
import { copyFile, mkdir, readdir } from "node:fs/promises";
import { join } from "node:path";
import { build } from "esbuild";

const into = process.argv[2] ?? "built";
await mkdir(into, { recursive: true });
await build({
  entryPoints: { page: "src/main.tsx" },
  bundle: true,
  minify: true,
  format: "esm",
  jsx: "automatic",
  target: "es2022",
  outdir: into,
  define: { "process.env.NODE_ENV": '"production"' },
  logLevel: "warning",
});
await build({
  entryPoints: (await readdir("src", { recursive: true }))
    .filter((name) => name.endsWith(".test.ts"))
    .map((name) => join("src", name)),
  bundle: true,
  platform: "node",
  format: "cjs",
  outdir: join(into, "..", "tests"),
  outbase: "src",
  entryNames: "[name]",
  outExtension: { ".js": ".cjs" },
  logLevel: "warning",
});
await copyFile("src/index.html", join(into, "index.html"));
// ELK runs in a worker, which is a file of its own: it is large, and loaded when it is needed.
await copyFile("node_modules/elkjs/lib/elk-worker.min.js", join(into, "elk.js"));
