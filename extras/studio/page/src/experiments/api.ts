// What the server can be asked of experiments.

import { ask, part } from "../api";
import type { ExperimentRow, Figure, Labels } from "../server";

export type Style = NonNullable<Figure["style"]>;

export const results = {
  every: () => ask("get", "/api/experiments"),
  one: (name: string) => ask("get", "/api/experiments/{name}", { words: { name } }),
  certificate: (name: string, certificate: string) =>
    ask("get", "/api/experiments/{name}/certificates/{certificate}", { words: { name, certificate } }),
  label: (name: string, body: Labels) =>
    ask("post", "/api/experiments/{name}/labels", { words: { name }, body }),
  exports: () => ask("get", "/api/exports"),
  words: () => ask("get", "/api/figure"),
  figure: (experiment: string, figure: string, more: Omit<Figure, "experiment" | "figure"> = {}) =>
    ask("post", "/api/figure", { body: { experiment, figure, ...more } }),
  compared: (first: string, second: string) =>
    ask("get", "/api/compare/{first}/{second}", { words: { first, second } }),
};

/** The address of a file of an experiment. */
export const fileOf = (name: string, path: string) => `/results/${part(name)}/${path}`;

export const nameOf = (row: ExperimentRow) => row.directory.split("/").pop() ?? "";
