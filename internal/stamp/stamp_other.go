//go:build !linux

package stamp

import (
	"errors"
	"net"
)

// Conn does not exist on this system.
type Conn struct{ *net.TCPConn }

// New tells that this system has no stamps.
func New(*net.TCPConn) (*Conn, error) { return nil, errors.New("this system stamps no reads") }

// Arrived returns 0: not known.
func (c *Conn) Arrived() int64 { return 0 }

// Guard does nothing on this system.
type Guard struct{}

// OpenGuard returns nil.
func OpenGuard() *Guard { return nil }

// Close does nothing.
func (g *Guard) Close() {}
