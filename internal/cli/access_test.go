package cli

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"io/fs"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// tlsfront: serves $SIM under https://127.0.0.1:port/base, in $FRONT, to clients with a certificate, until the script's end. The files
// ca.pem, cert.pem and key.pem are the server's authority and the client's certificate and key. What a client sends in its header comes
// back in the header of the answer, as a comment and as an answer's words.
func tlsFront(ts *testscript.TestScript, neg bool, args []string) {
	to, err := url.Parse(ts.Getenv("SIM"))
	ts.Check(err)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	ts.Check(err)
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), BasicConstraintsValid: true, IsCA: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	ts.Check(err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	ts.Check(err)
	clients := x509.NewCertPool()
	cert, _ := x509.ParseCertificate(der)
	clients.AddCert(cert)

	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.FlushInterval = -1
	srv := httptest.NewUnstartedServer(http.StripPrefix("/base", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		echo := strings.Join(slices.Concat(r.Header["Authorization"], r.Header["X-Api-Key"], r.Header["X-Access-Token"]), " ")
		if r.Method == http.MethodPost && strings.HasPrefix(r.URL.Path, "/v1/") {
			w.Header().Set("X-Echo", echo)
		}
		if r.Header.Get("X-Fail") != "" && strings.HasPrefix(r.URL.Path, "/v1/chat") {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"error":{"message":"not with %s","code":400}}`, echo)
			return
		}
		body, _ := io.ReadAll(r.Body) // a body that is read while the answer is written may be closed by then
		r.Body = io.NopCloser(bytes.NewReader(body))
		proxy.ServeHTTP(w, r)
	})))
	srv.TLS = &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients}
	srv.EnableHTTP2 = true
	srv.StartTLS()
	ts.Defer(srv.Close)
	for name, block := range map[string]*pem.Block{"ca.pem": {Type: "CERTIFICATE", Bytes: srv.Certificate().Raw}, "cert.pem": {Type: "CERTIFICATE", Bytes: der},
		"key.pem": {Type: "PRIVATE KEY", Bytes: private}} {
		ts.Check(os.WriteFile(ts.MkAbs(name), pem.EncodeToMemory(block), 0o600))
	}
	ts.Setenv("FRONT", srv.URL+"/base")
}

// nosecret FILE|DIR ...: fails when one of the files, or the bytes that it keeps in base64, holds the word that scripts use as a secret,
// plain or as the credentials of a proxy, or a line of key.pem.
func noSecret(ts *testscript.TestScript, neg bool, args []string) {
	words := []string{"sekret", base64.StdEncoding.EncodeToString([]byte("me:sekret77"))}
	if fileExists(ts.MkAbs("key.pem")) {
		words = append(words, strings.Split(ts.ReadFile("key.pem"), "\n")[1])
	}
	files := 0
	for _, arg := range args {
		ts.Check(filepath.WalkDir(ts.MkAbs(arg), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			files++
			for _, w := range words {
				if bytes.Contains(b, []byte(w)) || bytes.Contains(unpacked(b), []byte(w)) {
					return fmt.Errorf("%s holds %q", path, w)
				}
			}
			return nil
		}))
	}
	if files < len(args) {
		ts.Fatalf("%d files", files)
	}
}

// unpacked is what the lines of a file keep as data_b64, joined.
func unpacked(b []byte) (out []byte) {
	for line := range bytes.Lines(b) {
		var kept struct {
			Reads []struct {
				Data []byte `json:"data_b64"`
			} `json:"reads"`
		}
		if json.Unmarshal(line, &kept) == nil {
			for _, r := range kept.Reads {
				out = append(out, r.Data...)
			}
		}
	}
	return out
}

// namedengine: puts the URL of $SIM by a name that only the script's proxy knows into $NAMED.
func namedEngine(ts *testscript.TestScript, neg bool, args []string) {
	ts.Setenv("NAMED", strings.Replace(ts.Getenv("SIM"), "127.0.0.1", "engine.test", 1))
}

// The engine's process gets no secret in its arguments, which others may see: they go through its stdin.
func TestEngineProcess(t *testing.T) {
	a := &app{System: System{Self: "/bin/prony", Args: []string{"run", "--api-key", "sekret", "--isolate"}}}
	if got := a.engineProcess().Args; !slices.Equal(got, []string{"/bin/prony", "engine"}) {
		t.Errorf("%q", got)
	}
}
