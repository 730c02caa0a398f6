package main

import (
	"os"
	"strconv"
	"time"
)

// Clock tells times in ns from T0, a time of day that the environment has; without it T0 is the program's start.
type Clock struct {
	begun   time.Time
	begunNs int64
}

func startClock() Clock {
	begun := time.Now()
	t0, err := strconv.ParseInt(os.Getenv("EWAN_T0_UNIX_NS"), 10, 64)
	if err != nil {
		t0 = begun.UnixNano()
	}
	return Clock{begun, begun.UnixNano() - t0}
}

func (clock Clock) now() int64 {
	return clock.begunNs + int64(time.Since(clock.begun))
}

// until returns how long it is until a time from T0, 0 if it has passed.
func (clock Clock) until(ns int64) time.Duration {
	return time.Duration(max(0, ns-clock.now()))
}
