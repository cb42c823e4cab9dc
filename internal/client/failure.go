package client

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"os"
	"strings"
	"syscall"

	"github.com/prony-bench/prony/internal/memnet"
	"github.com/prony-bench/prony/internal/wire"
)

// connectFailure says in few words why a connection could not be opened.
func connectFailure(err error) (wire.Fail, string) {
	var dns *net.DNSError
	switch {
	case errors.As(err, &dns):
		return wire.FailDNS, "no address for " + dns.Name
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, memnet.ErrRefused):
		return wire.FailRefused, "connection refused"
	case errors.Is(err, syscall.EAGAIN): // of a unix socket
		return wire.FailRefused, "the server's queue of connections is full"
	case errors.Is(err, context.Canceled):
		return wire.FailIncomplete, "cut while connecting"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), isTimeout(err):
		return wire.FailTimeout, "no connection within the connect timeout"
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return wire.FailDropped, "too many open files (raise the limit: ulimit -n)"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return wire.FailDropped, "no local port is free (reuse connections, or widen net.ipv4.ip_local_port_range)"
	default:
		return wire.FailRefused, lastWords(err)
	}
}

func tlsFailure(err error) (wire.Fail, string) {
	var unknown x509.UnknownAuthorityError
	var host x509.HostnameError
	var record tls.RecordHeaderError
	switch {
	case errors.Is(err, context.Canceled):
		return wire.FailIncomplete, "cut in the TLS handshake"
	case errors.Is(err, context.DeadlineExceeded), isTimeout(err):
		return wire.FailTimeout, "no TLS handshake within the connect timeout"
	case errors.As(err, &unknown):
		return wire.FailTLS, "the certificate is signed by an unknown authority"
	case errors.As(err, &host):
		return wire.FailTLS, host.Error()
	case errors.As(err, &record):
		return wire.FailTLS, "the server does not speak TLS on this port"
	default:
		return wire.FailTLS, lastWords(err)
	}
}

func readFailure(err error) string {
	if errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, memnet.ErrReset) {
		return "connection reset by the server"
	}
	return lastWords(err)
}

func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}

// lastWords returns an error's innermost text: the outer ones repeat addresses.
func lastWords(err error) string {
	var op *net.OpError
	if errors.As(err, &op) && op.Err != nil {
		err = op.Err
	}
	return strings.TrimPrefix(err.Error(), "connect: ")
}
