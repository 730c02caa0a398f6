// What the server can be asked of runs that are over.

import { ask } from "../api";

export const replays = {
  runs: (name: string) => ask("get", "/api/replays/{name}", { words: { name } }),
  about: (name: string, run: string) => ask("get", "/api/replays/{name}/{run}", { words: { name, run } }),
  flows: (name: string, run: string) =>
    ask("get", "/api/replays/{name}/{run}/flows", { words: { name, run } }),
  piece: (name: string, run: string, level: number, number: number) =>
    ask("get", "/api/replays/{name}/{run}/links/{level}/{piece}", {
      words: { name, run, level: `${level}`, piece: `${number}` },
    }),
};
