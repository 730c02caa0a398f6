import { createRoot } from "react-dom/client";
import "@xyflow/react/dist/style.css";
import "@xterm/xterm/css/xterm.css";
import "uplot/dist/uPlot.min.css";
import "./style.css";
import { App } from "./App";

const place = document.getElementById("root");
if (place) createRoot(place).render(<App />);
