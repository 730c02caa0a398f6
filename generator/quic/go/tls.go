package main

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"time"
)

const (
	serverName     = "ewan"
	protocolPrefix = "ewan-bulk-"
)

// protocol is that of a stream of a transfer: by this name the receiver knows which connection is which.
func protocol(stream int) string { return fmt.Sprintf("%s%d", protocolPrefix, stream) }

func streamOf(protocol string) int {
	stream, _ := strconv.Atoi(strings.TrimPrefix(protocol, protocolPrefix))
	return stream
}

// clientTLS takes any certificate: both ends are this program, in a lab that has no other.
func clientTLS(stream int) *tls.Config {
	return &tls.Config{
		ServerName: serverName, NextProtos: []string{protocol(stream)}, MinVersion: tls.VersionTLS13,
		InsecureSkipVerify: true,
	}
}

// serverTLS makes a certificate, which has the same size each time.
func serverTLS(streams int) (*tls.Config, error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	template := x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{serverName},
		NotBefore: time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC),
	}
	certificate, err := x509.CreateCertificate(rand.Reader, &template, &template, public, private)
	if err != nil {
		return nil, err
	}
	var protocols []string
	for stream := range streams {
		protocols = append(protocols, protocol(stream))
	}
	own := tls.Certificate{Certificate: [][]byte{certificate}, PrivateKey: private}
	return &tls.Config{Certificates: []tls.Certificate{own}, NextProtos: protocols, MinVersion: tls.VersionTLS13}, nil
}
