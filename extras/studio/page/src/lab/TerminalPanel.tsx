// A shell in a node.

import { FitAddon } from "@xterm/addon-fit";
import { Terminal } from "@xterm/xterm";
import { useEffect, useRef } from "react";
import { socket } from "../api";

export function TerminalPanel({ lab, node }: { lab: string; node: string }) {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!place.current) return;
    const shown = new Terminal({ fontSize: 13, scrollback: 5000, screenReaderMode: true });
    const fit = new FitAddon();
    shown.loadAddon(fit);
    shown.open(place.current);
    const line = socket(`/ws/live/${encodeURIComponent(lab)}/nodes/${encodeURIComponent(node)}`);
    line.binaryType = "arraybuffer";
    const resize = () => {
      fit.fit();
      if (line.readyState === WebSocket.OPEN)
        line.send(JSON.stringify({ columns: shown.cols, rows: shown.rows }));
    };
    line.onopen = resize;
    line.onmessage = (event: MessageEvent<ArrayBuffer>) => shown.write(new Uint8Array(event.data));
    line.onclose = (event) => shown.write(`\r\n[${event.reason || "closed"}]\r\n`);
    const typed = shown.onData((data) => {
      if (line.readyState === WebSocket.OPEN) line.send(new TextEncoder().encode(data));
    });
    const sized = new ResizeObserver(resize);
    sized.observe(place.current);
    shown.focus();
    return () => {
      sized.disconnect();
      typed.dispose();
      line.close();
      shown.dispose();
    };
  }, [lab, node]);
  return <div className="terminal" ref={place} data-testid="terminal" />;
}
