package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
)

const (
	windowBytes = 64_000_000
	bufferBytes = 8_000_000
)

// Request is the command line, as ../src/arguments.rs has it.
type Request struct {
	End         string
	Address     netip.AddrPort
	Streams     int
	Bytes       []int64
	AtNs        int64
	At          bool
	AfterNs     int64
	ForNs       int64
	BinNs       int64
	SampleNs    int64
	WindowBytes int64
	BufferBytes int64
	Seed        int64
	Writes      *Writes
}

func read(words []string) (Request, error) {
	request := Request{Streams: 1, WindowBytes: windowBytes, BufferBytes: bufferBytes}
	if len(words) == 0 || (words[0] != "send" && words[0] != "receive") {
		return request, errors.New("write send or receive first")
	}
	request.End = words[0]
	var address netip.Addr
	var port int64
	numbers := map[string]*int64{
		"--port": &port, "--at-ns": &request.AtNs, "--after-ns": &request.AfterNs, "--for-ns": &request.ForNs,
		"--bin-ns": &request.BinNs, "--sample-ns": &request.SampleNs, "--window": &request.WindowBytes,
		"--buffer": &request.BufferBytes, "--seed": &request.Seed,
	}
	for rest := words[1:]; len(rest) > 0; rest = rest[2:] {
		if len(rest) == 1 {
			return request, fmt.Errorf("%s has no value", rest[0])
		}
		name, text := rest[0], rest[1]
		value, wrong := strconv.ParseInt(text, 10, 64)
		if wrong == nil && value < 0 {
			wrong = errors.New("it is negative")
		}
		var err error
		switch {
		case name == "--address":
			address, err = netip.ParseAddr(text)
		case name == "--congestion":
			if text != "reno" {
				return request, fmt.Errorf("--congestion %s: quic-go has reno", text)
			}
		case name == "--writes":
			err = json.Unmarshal([]byte(text), &request.Writes)
		case name == "--streams":
			request.Streams, err = int(min(max(value, 1), 1000)), wrong
		case name == "--bytes":
			request.Bytes, err = append(request.Bytes, value), wrong
		case numbers[name] != nil:
			*numbers[name], err = value, wrong
			request.At = request.At || name == "--at-ns"
		default:
			return request, fmt.Errorf("%s: there is no such option", name)
		}
		if err != nil {
			return request, fmt.Errorf("%s %s: %w", name, text, err)
		}
	}
	if port < 1 || port > 65535 || !address.IsValid() {
		return request, errors.New("write the receiver's --address, and its --port, 1 to 65535")
	}
	request.Address = netip.AddrPortFrom(address, uint16(port))
	if len(request.Bytes) != 0 && len(request.Bytes) != request.Streams {
		return request, errors.New("--bytes: write it once for each of --streams")
	}
	return request, nil
}
