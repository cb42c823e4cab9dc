package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/shirou/gopsutil/v4/process"

	"github.com/prony-bench/prony/internal/proxytest"
)

// The test binary is also the program: scripts run it as `prony`.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"prony": func() {
			self, _ := os.Executable()
			os.Exit(Main(context.Background(), System{
				Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv, Self: self, Version: "test",
				Signals: func() (<-chan os.Signal, func()) {
					c := make(chan os.Signal, 2)
					signal.Notify(c, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
					return c, func() { signal.Stop(c) }
				},
			}))
		},
	})
}

// Every command by scripts: what is printed, the exit code and the files.
func TestScripts(t *testing.T) {
	cases, err := filepath.Abs("../../testdata/cases")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Setenv("CASES", cases)
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"simulate": simulate, "exits": exits, "jsonfield": jsonField, "killmid": killMid, "engineless": engineless, "deadport": deadPort, "lines": lines, "sed": sed, "redact": redactURL, "proxy": proxy, "noreader": noReader, "within": within, "recorder": recorder, "tlsfront": tlsFront, "nosecret": noSecret, "namedengine": namedEngine,
		},
	})
}

// simulate [name] flags...: starts `prony sim` on a free port until the script's end and puts its URL into $SIM (or $name, in capitals).
func simulate(ts *testscript.TestScript, neg bool, args []string) {
	name := "SIM"
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		name, args = args[0], args[1:]
	}
	cmd := exec.Command("prony", append([]string{"sim", "--listen", "127.0.0.1:0", "--until-stdin-closes"}, args...)...) // a --listen of args comes later, and wins
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = append(os.Environ(), "PATH="+ts.Getenv("PATH"))
	cmd.Path = lookIn(ts, "prony")
	in, err := cmd.StdinPipe()
	ts.Check(err)
	out, err := cmd.StdoutPipe()
	ts.Check(err)
	cmd.Stderr = os.Stderr
	ts.Check(cmd.Start())
	ts.Defer(func() { in.Close(); cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	ts.Check(err)
	url, _, _ := strings.Cut(line, " ")
	ts.Setenv(name, url)
}

func lookIn(ts *testscript.TestScript, name string) string {
	for _, dir := range filepath.SplitList(ts.Getenv("PATH")) {
		if p := filepath.Join(dir, name); fileExists(p) {
			return p
		}
	}
	ts.Fatalf("no %s on the path", name)
	return ""
}

func fileExists(p string) bool { _, err := os.Stat(p); return err == nil }

// command prepares a command whose output goes to the files out and err. The returned function closes them.
func command(ts *testscript.TestScript, args []string) (cmd *exec.Cmd, closeFiles func()) {
	cmd = exec.Command(lookIn(ts, args[0]), args[1:]...)
	cmd.Dir = ts.MkAbs(".")
	for _, k := range []string{"PATH", "HOME", "SIM", "TMPDIR", "PRONY_API_KEY", "OPENAI_API_KEY", "WORK", "XDG_STATE_HOME", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"} {
		cmd.Env = append(cmd.Env, k+"="+ts.Getenv(k))
	}
	out, err := os.Create(ts.MkAbs("out"))
	ts.Check(err)
	errs, err := os.Create(ts.MkAbs("err"))
	ts.Check(err)
	cmd.Stdout, cmd.Stderr = out, errs
	return cmd, func() { out.Close(); errs.Close() }
}

// exits CODE[,CODE] prony args...: runs and compares the exit code with those; output goes to the files out and err.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND ...")
	}
	cmd, closeFiles := command(ts, args[1:])
	defer closeFiles()
	err := cmd.Run()
	if code := cmd.ProcessState.ExitCode(); !slices.Contains(strings.Split(args[0], ","), fmt.Sprint(code)) {
		ts.Fatalf("exit code %d, want %s (%v)\nstderr: %s\nstdout: %s", code, args[0], err, ts.ReadFile("err"), ts.ReadFile("out"))
	}
}

// noreader CODE[,CODE] prony args...: as exits, but nobody reads the standard output.
func noReader(ts *testscript.TestScript, neg bool, args []string) {
	cmd, closeFiles := command(ts, args[1:])
	defer closeFiles()
	r, w, err := os.Pipe()
	ts.Check(err)
	r.Close()
	defer w.Close()
	cmd.Stdout = w
	err = cmd.Run()
	if code := cmd.ProcessState.ExitCode(); !slices.Contains(strings.Split(args[0], ","), fmt.Sprint(code)) {
		ts.Fatalf("exit code %d, want %s (%v)\nstderr: %s", code, args[0], err, ts.ReadFile("err"))
	}
}

// jsonfield FILE path REGEXP: a field of a JSON file, its path by dots.
func jsonField(ts *testscript.TestScript, neg bool, args []string) {
	var v any
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[0])), &v))
	for _, key := range strings.Split(args[1], ".") {
		switch x := v.(type) {
		case map[string]any:
			v = x[key]
		case []any:
			var i int
			fmt.Sscan(key, &i)
			if i >= len(x) {
				ts.Fatalf("%s has no %s", args[1], key)
			}
			v = x[i]
		default:
			ts.Fatalf("%s: no %s in %v", args[1], key, v)
		}
	}
	b, _ := json.Marshal(v)
	if regexp.MustCompile(args[2]).MatchString(strings.Trim(string(b), `"`)) == neg {
		ts.Fatalf("%s is %s", args[1], b)
	}
}

// within PLAN FIELD FILE SHARE: the size of a file differs from a number of a JSON object by no more than this share of the size.
func within(ts *testscript.TestScript, neg bool, args []string) {
	var v map[string]any
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[0])), &v))
	said, ok := v[args[1]].(float64)
	share, err := strconv.ParseFloat(args[3], 64)
	ts.Check(err)
	if size := float64(len(ts.ReadFile(args[2]))); !ok || math.Abs(said-size) > share*size {
		ts.Fatalf("%s has %.0f bytes, %s is %v", args[2], size, args[1], v[args[1]])
	}
}

// lines FILE N: the number of lines of a file; N may be a range a..b.
func lines(ts *testscript.TestScript, neg bool, args []string) {
	n := strings.Count(ts.ReadFile(args[0]), "\n")
	lo, hi := 0, 0
	if c, err := fmt.Sscanf(args[1], "%d..%d", &lo, &hi); c == 1 || err != nil && c < 2 {
		hi = lo
	}
	if (n >= lo && n <= hi) == neg {
		ts.Fatalf("%s has %d lines", args[0], n)
	}
}

// killmid SIGNAL[,SIGNAL] DELAY FILE prony args...: starts a command, waits until FILE is there (- for none), sends each signal after
// a delay, waits for the end, and leaves the exit code in the file code.
func killMid(ts *testscript.TestScript, neg bool, args []string) {
	delay, err := time.ParseDuration(args[1])
	ts.Check(err)
	cmd, closeFiles := command(ts, args[3:])
	defer closeFiles()
	ts.Check(cmd.Start())
	for range 1000 {
		if args[2] == "-" || fileExists(ts.MkAbs(args[2])) {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	for _, name := range strings.Split(args[0], ",") {
		time.Sleep(delay)
		sig := map[string]syscall.Signal{"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP, "KILL": syscall.SIGKILL}[name]
		ts.Check(cmd.Process.Signal(sig))
	}
	cmd.Wait()
	ts.Check(os.WriteFile(ts.MkAbs("code"), []byte(fmt.Sprintln(cmd.ProcessState.ExitCode())), 0o600))
}

// engineless DELAY prony args...: starts a run with --isolate, kills its engine process after a delay, waits for the end, and leaves the
// exit code in the file code. The last argument is the run directory, which is there when the run begins.
func engineless(ts *testscript.TestScript, neg bool, args []string) {
	delay, err := time.ParseDuration(args[0])
	ts.Check(err)
	cmd, closeFiles := command(ts, args[1:])
	defer closeFiles()
	ts.Check(cmd.Start())
	run, err := process.NewProcess(int32(cmd.Process.Pid))
	ts.Check(err)
	var engine []*process.Process // while the run asks about the machine it has other children
	for range 1000 {
		if engine, _ = run.Children(); fileExists(ts.MkAbs(args[len(args)-1])) && len(engine) == 1 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	time.Sleep(delay)
	for _, e := range engine {
		ts.Check(e.Kill())
	}
	cmd.Wait()
	ts.Check(os.WriteFile(ts.MkAbs("code"), []byte(fmt.Sprintln(cmd.ProcessState.ExitCode())), 0o600))
}

// proxy [CREDENTIALS]: starts a proxy until the script's end and puts its host:port into $PROXY. With the word notunnels it opens none.
func proxy(ts *testscript.TestScript, neg bool, args []string) {
	p := &proxytest.Proxy{Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, strings.Replace(addr, "engine.test:", "127.0.0.1:", 1)) // a name that only it knows
	}}
	for _, a := range args {
		if a == "notunnels" {
			p.NoTunnels = true
		} else {
			p.Credentials = a
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		p.Serve(l)
	}()
	ts.Defer(func() { l.Close(); <-ended })
	ts.Setenv("PROXY", l.Addr().String())
}

// recorder [html]: starts a server until the script's end, whose URL is in $RECORDER; the header fields of each POST are lines of the file heads.
func recorder(ts *testscript.TestScript, neg bool, args []string) {
	f, err := os.Create(ts.MkAbs("heads"))
	ts.Check(err)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, values := range r.Header {
			for _, v := range values {
				if r.Method == http.MethodPost {
					fmt.Fprintf(f, "%s: %s\n", name, v)
				}
			}
		}
		if slices.Contains(args, "html") {
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, "<html><title>nothing here</title>")
			return
		}
		fmt.Fprint(w, `{"data":[{"id":"m"}]}`)
	}))
	ts.Defer(func() { srv.Close(); f.Close() })
	ts.Setenv("RECORDER", srv.URL)
}

// deadport: puts the URL of a port where nobody listens into $DEAD, and its host:port into $DEADADDR.
func deadPort(ts *testscript.TestScript, neg bool, args []string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	ts.Setenv("DEADADDR", l.Addr().String())
	ts.Setenv("DEAD", "http://"+l.Addr().String())
	l.Close()
}

// sed FILE REGEXP TO: replaces all that matches, of which there must be some.
func sed(ts *testscript.TestScript, neg bool, args []string) {
	re, old := regexp.MustCompile(args[1]), ts.ReadFile(args[0])
	if !re.MatchString(old) {
		ts.Fatalf("%s has no %s", args[0], args[1])
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(re.ReplaceAllString(old, args[2])), 0o600))
}

// redact FILE: fails when a file holds the word that scripts use as a secret.
func redactURL(ts *testscript.TestScript, neg bool, args []string) {
	for _, f := range args {
		if strings.Contains(ts.ReadFile(f), "sekret") {
			ts.Fatalf("%s holds the secret", f)
		}
	}
}
