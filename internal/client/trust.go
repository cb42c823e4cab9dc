package client

import (
	"crypto/tls"
	"crypto/x509"

	"github.com/prony-bench/prony/internal/fault"
)

// Trust is whom TLS trusts, and how this client shows who it is, in a form that can go to another process.
type Trust struct {
	Authorities []byte // certificates in PEM that are trusted besides the system's; empty = none
	Insecure    bool   // no certificate is checked
	Certificate []byte // of this client, in PEM, with those above it; empty = none
	Key         []byte // of the certificate, in PEM
}

// Config makes the settings of TLS.
func (t *Trust) Config() (*tls.Config, error) {
	c := &tls.Config{InsecureSkipVerify: t.Insecure}
	if len(t.Authorities) > 0 {
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool() // a system without one
		}
		if !pool.AppendCertsFromPEM(t.Authorities) {
			return nil, fault.New(fault.Usage, "--cacert holds no certificate in PEM", "it is a text that begins with -----BEGIN CERTIFICATE-----")
		}
		c.RootCAs = pool
	}
	if len(t.Certificate) > 0 {
		pair, err := tls.X509KeyPair(t.Certificate, t.Key)
		if err != nil {
			return nil, fault.Wrap(fault.Usage, err, "--cert and --key", "both are texts in PEM, the key without a password; one file may hold both, as --cert")
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}
