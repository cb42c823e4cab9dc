package client

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prony-bench/prony/internal/fault"
	"github.com/prony-bench/prony/internal/opt"
	"github.com/prony-bench/prony/internal/wire"
)

// certificate makes a certificate that signs itself, with its key, in PEM.
func certificate(t *testing.T) (cert, key []byte) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "client"}, NotAfter: time.Now().Add(time.Hour),
		BasicConstraintsValid: true, IsCA: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &k.PublicKey, k)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})
}

// A server that asks for a certificate is reached by every engine that speaks TLS, with an authority of its own or none.
func TestTrust(t *testing.T) {
	cert, key := certificate(t)
	srv := httptest.NewUnstartedServer(answer)
	clients := x509.NewCertPool()
	clients.AppendCertsFromPEM(cert)
	srv.TLS = &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients}
	srv.EnableHTTP2 = true
	srv.StartTLS()
	defer srv.Close()
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw})
	for _, c := range []struct {
		name  string
		trust Trust
		fails bool
	}{
		{"an authority of its own", Trust{Authorities: authority, Certificate: cert, Key: key}, false},
		{"nothing checked", Trust{Insecure: true, Certificate: cert, Key: key}, false},
		{"key and certificate in one", Trust{Insecure: true, Certificate: append(key, cert...), Key: append(cert, key...)}, false},
		{"no certificate of the client", Trust{Authorities: authority}, true},
		{"an unknown authority", Trust{Certificate: cert, Key: key}, true},
	} {
		config, err := c.trust.Config()
		if err != nil {
			t.Fatal(err)
		}
		for _, h2 := range []bool{false, true} {
			for _, start := range []func(Options) Engine{New, func(o Options) Engine { return NewPortable(o) }} {
				target, _ := ParseTarget(srv.URL + "/base")
				s := newSink()
				e := start(Options{Epoch: time.Now(), Sink: s, Targets: []Target{target}, Spin: DefaultSpin, Timeout: 20 * time.Second, HTTP2: h2, TLS: config, Trust: &c.trust})
				for i := range 3 {
					e.Submit(&Job{ID: i, Due: opt.Some(time.Duration(i) * ms), Call: wire.Call{Method: "POST", Path: "/x", Body: []byte("{}")}})
				}
				s.await(3)
				e.Close()
				for i := range 3 {
					if tr := s.done[i]; (tr.Fail != "") != c.fails || !c.fails && s.body(i) != answered {
						t.Errorf("%s, h2 %v, %d: %q %q %q", c.name, h2, i, tr.Fail, tr.Cause, s.body(i))
					}
				}
			}
		}
	}
}

// Files that are none of what they should be are refused.
func TestTrustRefuses(t *testing.T) {
	cert, key := certificate(t)
	other, _ := certificate(t)
	for _, c := range []struct {
		trust Trust
		cause string
	}{
		{Trust{Authorities: []byte("hello")}, "--cacert holds no certificate"},
		{Trust{Authorities: key}, "--cacert holds no certificate"},
		{Trust{Certificate: cert, Key: []byte("hello")}, "--cert and --key"},
		{Trust{Certificate: key, Key: key}, "--cert and --key"},
		{Trust{Certificate: other, Key: key}, "--cert and --key"},
	} {
		if _, err := c.trust.Config(); fault.CodeOf(err) != fault.Usage || !strings.HasPrefix(err.Error(), c.cause) || fault.HintOf(err) == "" || strings.Contains(err.Error(), "BEGIN") {
			t.Errorf("%s: %v", c.cause, err)
		}
	}
}
