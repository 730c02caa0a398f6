// What the links of the lab that is looked at do at this moment, and did over the last seconds.

import { useEffect, useRef, useState } from "react";
import { type Heading, type Moment, socket } from "../api";

const AGAIN_MS = 1000;
const KEPT_FRAMES = 600; // 30 seconds

export interface Course {
  at: number[];
  rate: number[];
  queue: number[];
  dropped: number[];
}
export const key = (link: string, heading: Heading): string => `${link} ${heading}`;

/** Frames of a lab's links, 20 a second: the last moment of each, and its course. Comes back when the server does. */
export function useFrames(lab: string | null): {
  moments: Map<string, Moment>;
  courses: Map<string, Course>;
} {
  const [moments, setMoments] = useState<Map<string, Moment>>(new Map());
  const courses = useRef(new Map<string, Course>());
  useEffect(() => {
    courses.current = new Map();
    setMoments(new Map());
    if (lab === null) return;
    let open: WebSocket | null = null;
    let timer = 0;
    let ended = false;
    const begin = () => {
      open = socket(`/ws/live/${encodeURIComponent(lab)}`);
      open.binaryType = "arraybuffer";
      open.onmessage = (event: MessageEvent<ArrayBuffer>) => {
        const found = JSON.parse(new TextDecoder().decode(event.data)) as Moment[];
        keep(courses.current, found);
        setMoments(new Map(found.map((each) => [key(each.link, each.direction), each])));
      };
      open.onclose = () => {
        if (!ended) timer = window.setTimeout(begin, AGAIN_MS);
      };
    };
    begin();
    return () => {
      ended = true;
      clearTimeout(timer);
      open?.close();
    };
  }, [lab]);
  return { moments, courses: courses.current };
}

function keep(courses: Map<string, Course>, moments: Moment[]): void {
  const now = Date.now() / 1000;
  for (const each of moments) {
    const name = key(each.link, each.direction);
    let course = courses.get(name);
    if (!course) {
      course = { at: [], rate: [], queue: [], dropped: [] };
      courses.set(name, course);
    }
    course.at.push(now);
    course.rate.push(each.rate_bps / 1e6);
    course.queue.push(each.queue_bytes / 1e3);
    course.dropped.push(each.dropped_packets);
    if (course.at.length > KEPT_FRAMES) for (const column of Object.values(course)) column.shift();
  }
}
