package main

import (
	"encoding/json"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
)

// Law is one of a value, as the request of ewan's own generator has it (emulator/traffic/src/flows/law.rs).
type Law struct {
	Name      string   `json:"law"`
	Value     float64  `json:"value"`
	Low       float64  `json:"low"`
	High      float64  `json:"high"`
	Mean      float64  `json:"mean"`
	Shape     float64  `json:"shape"`
	Deviation float64  `json:"deviation"`
	Most      *float64 `json:"most"`
}

// Writes are the laws of an application that limits its sender.
type Writes struct {
	SizeBytes  Law  `json:"size_bytes"`
	IntervalNs Law  `json:"interval_ns"`
	OnNs       *Law `json:"on_ns"`
	OffNs      *Law `json:"off_ns"`
}

// Write is one of them: when it is due, in ns from T0, and its bytes.
type Write struct {
	atNs, bytes int64
}

// UnmarshalJSON reads a law whose name is known.
func (law *Law) UnmarshalJSON(text []byte) error {
	type plain Law
	if err := json.Unmarshal(text, (*plain)(law)); err != nil {
		return err
	}
	if !slices.Contains([]string{"constant", "uniform", "exponential", "pareto", "weibull", "gamma", "normal"}, law.Name) {
		return fmt.Errorf("there is no law %q", law.Name)
	}
	return nil
}

// draw draws a value. The draws are Go's: with the same seed they are others than those of ewan's own generator.
func (law *Law) draw(random *rand.Rand) float64 {
	value := 0.0
	switch law.Name {
	case "constant":
		value = law.Value
	case "uniform":
		value = law.Low + (law.High-law.Low)*random.Float64()
	case "exponential":
		value = law.Mean * random.ExpFloat64()
	case "pareto":
		value = law.Mean * (law.Shape - 1) / law.Shape * math.Pow(1-random.Float64(), -1/law.Shape)
	case "weibull":
		value = law.Mean / math.Gamma(1+1/law.Shape) * math.Pow(random.ExpFloat64(), 1/law.Shape)
	case "gamma":
		value = law.Mean / law.Shape * gamma(random, law.Shape)
	case "normal":
		value = max(0, law.Mean+law.Deviation*random.NormFloat64())
	}
	if law.Most != nil {
		value = min(value, *law.Most)
	}
	return value
}

// gamma draws from a gamma distribution of scale 1 (Marsaglia and Tsang, A Simple Method for Generating Gamma Variables,
// 2000).
func gamma(random *rand.Rand, shape float64) float64 {
	if shape < 1 {
		return gamma(random, shape+1) * math.Pow(1-random.Float64(), 1/shape)
	}
	d := shape - 1.0/3
	c := 1 / math.Sqrt(9*d)
	for {
		x := random.NormFloat64()
		v := math.Pow(1+c*x, 3)
		if v > 0 && math.Log(1-random.Float64()) < x*x/2+d-d*v+d*math.Log(v) {
			return d * v
		}
	}
}

// schedule yields all writes from a time on. Intervals run in on periods only.
func (writes *Writes) schedule(seed, startNs int64) iter.Seq[Write] {
	stream := func(number uint64) *rand.Rand { return rand.New(rand.NewPCG(uint64(seed), number)) }
	sizes, intervals, on, off := stream(0), stream(1), stream(2), stream(3)
	return func(yield func(Write) bool) {
		at, onUntil, offBefore := 0.0, math.Inf(1), 0.0
		if writes.OnNs != nil {
			onUntil = writes.OnNs.draw(on)
		}
		for {
			for writes.OnNs != nil && writes.OffNs != nil && at >= onUntil {
				offBefore += writes.OffNs.draw(off)
				onUntil += writes.OnNs.draw(on)
			}
			bytes := max(1, math.Round(writes.SizeBytes.draw(sizes)))
			if !yield(Write{startNs + int64(math.Round(at+offBefore)), int64(bytes)}) {
				return
			}
			at += writes.IntervalNs.draw(intervals)
		}
	}
}
