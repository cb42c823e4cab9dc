//go:build !linux

package tap

import (
	"net/netip"
	"time"
)

// Tap is an open packet ring; here there is none.
type Tap struct{}

// Open returns ErrUnsupported.
func Open(Options) (*Tap, error) { return nil, ErrUnsupported }

// Close does nothing.
func (*Tap) Close() error { return nil }

// Read returns ErrUnsupported.
func (*Tap) Read(time.Duration, func(*Packet)) (int, error) { return 0, ErrUnsupported }

// SeenUntil returns 0: nothing has been seen.
func (*Tap) SeenUntil() int64 { return 0 }

// Stats returns zeros.
func (*Tap) Stats() Stats { return Stats{} }

// InterfaceFor returns ErrUnsupported.
func InterfaceFor(netip.AddrPort) (name string, index int, err error) { return "", 0, ErrUnsupported }
