// Labs that are up, long work, and what the links of the lab that is looked at do at this moment.

import { useCallback, useEffect, useRef, useState } from "react";
import {
  api,
  type Experiment,
  type Heading,
  type Job,
  type Moment,
  type RefusedError,
  socket,
  type Up,
} from "./api";

const EVERY_MS = 1000;
const AGAIN_MS = 1000;
const KEPT_FRAMES = 600; // 30 seconds

export interface Course {
  at: number[];
  rate: number[];
  queue: number[];
  dropped: number[];
}
export const key = (link: string, heading: Heading): string => `${link} ${heading}`;

/** Asks again and again; an answer that does not come is told once, and one that is as before changes nothing. */
export function useAsked<T>(ask: () => Promise<T>, first: T, fail: (why: string) => void): [T, () => void] {
  const [found, setFound] = useState(first);
  const silent = useRef(false);
  const now = useCallback(() => {
    ask().then(
      (answer) => {
        silent.current = false;
        setFound((old) => (JSON.stringify(old) === JSON.stringify(answer) ? old : answer));
      },
      (error: RefusedError) => {
        if (!silent.current) fail(error.message);
        silent.current = true;
      },
    );
  }, [ask, fail]);
  useEffect(() => {
    now();
    const timer = setInterval(now, EVERY_MS);
    return () => clearInterval(timer);
  }, [now]);
  return [found, now];
}

const none = async (): Promise<Experiment[]> => [];
/** Asked for while they are looked at. */
export const useExperiments = (fail: (why: string) => void, seen: boolean): [Experiment[], () => void] =>
  useAsked(seen ? api.experiments : none, [], fail);
export const useLabs = (fail: (why: string) => void): [Up[], () => void] => useAsked(api.live, [], fail);
export const useJobs = (fail: (why: string) => void): [Job[], () => void] => useAsked(api.jobs, [], fail);

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
