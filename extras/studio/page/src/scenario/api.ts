// What the server can be asked of scenarios.

import { ask } from "../api";
import type { Kept } from "../common/document";

export interface Choice {
  virtual: boolean;
  scale: string | null;
  point: number;
}

export const scenarios = {
  points: (job: string) => ask("get", "/api/jobs/{job}/points", { words: { job } }),
  schema: () => ask("get", "/api/scenario/schema"),
  describe: ({ name, text, where }: Kept, choice: Choice) =>
    ask("post", "/api/scenario/describe", { body: { name, text, where: where ?? "here", ...choice } }),
};
