// Dashed lines in a plot, at moments at which something happened.

import type uPlot from "uplot";

/** `times` as the plot's x has them; `dash`: on and off, in pixels of the page. */
export function drawDashes(plot: uPlot, times: number[], ink: string, [on, off]: [number, number]): void {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.strokeStyle = ink;
  ctx.lineWidth = devicePixelRatio;
  ctx.setLineDash([on * devicePixelRatio, off * devicePixelRatio]);
  for (const time of times) {
    const x = Math.round(plot.valToPos(time, "x", true));
    if (!(x >= bbox.left && x <= bbox.left + bbox.width)) continue; // also where the plot has no times yet
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
  }
  ctx.restore();
}
