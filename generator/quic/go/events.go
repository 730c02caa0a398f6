package main

import (
	"sync"

	"github.com/quic-go/quic-go/qlog"
	"github.com/quic-go/quic-go/qlogwriter"
)

// Events are what quic-go tells of a connection as it goes on: the events of its qlog, of which the last values are kept.
type Events struct {
	lock   sync.Mutex
	window int
	mtu    int
	lost   uint64
}

// AddProducer takes the events of a part of the connection.
func (events *Events) AddProducer() qlogwriter.Recorder { return events }

// SupportsSchemas returns true: RecordEvent leaves out what it does not know.
func (events *Events) SupportsSchemas(string) bool { return true }

// Close ends the events of a part of the connection.
func (events *Events) Close() error { return nil }

// RecordEvent takes an event. A metric that did not change is 0 in it.
func (events *Events) RecordEvent(event qlogwriter.Event) {
	events.lock.Lock()
	defer events.lock.Unlock()
	switch found := event.(type) {
	case qlog.MetricsUpdated:
		if found.CongestionWindow != 0 {
			events.window = found.CongestionWindow
		}
	case qlog.MTUUpdated:
		events.mtu = found.Value
	case qlog.PacketLost:
		events.lost++
	}
}

func (events *Events) values() (window, mtu int, lost uint64) {
	events.lock.Lock()
	defer events.lock.Unlock()
	return events.window, events.mtu, events.lost
}
