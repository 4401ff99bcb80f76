package cli

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"coder/internal/app"
)

// released sets where releases are: a server with one of this version, signed.
func released(t *testing.T, env *Env, version string) {
	t.Helper()
	server := httptest.NewServer(signed(t, env, version))
	t.Cleanup(server.Close)
	env.Releases.Address = server.URL
}

// signed serves a release that is signed with a new key, and gives env this key.
func signed(t *testing.T, env *Env, version string) http.Handler {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	var packed bytes.Buffer
	zw := gzip.NewWriter(&packed)
	tw := tar.NewWriter(zw)
	program := "#!/bin/sh\necho coder " + version + "\n"
	err = errors.Join(err, tw.WriteHeader(&tar.Header{Name: "coder/bin/coder", Mode: 0o755, Size: int64(len(program))}))
	_, wrong := tw.Write([]byte(program))
	if err := errors.Join(err, wrong, tw.Close(), zw.Close()); err != nil {
		t.Fatal(err)
	}
	name := "coder_" + version + "_" + runtime.GOOS + "_" + runtime.GOARCH + ".tar.gz"
	sums := fmt.Appendf(nil, "%x  %s\n", sha256.Sum256(packed.Bytes()), name)
	files := map[string][]byte{"/" + name: packed.Bytes(), "/SHA256SUMS": sums, "/SHA256SUMS.sig": []byte(base64.StdEncoding.EncodeToString(ed25519.Sign(private, sums)))}
	env.Releases.Key = base64.StdEncoding.EncodeToString(public)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write(files[r.URL.Path]) })
}

// updating runs coder update as version 1.2.3, which was installed in a way at env.Exe.
func updating(t *testing.T, how string) (env *Env, run func(args ...string) string) {
	t.Helper()
	prefix, was := t.TempDir(), app.Version
	app.Version = "1.2.3"
	t.Cleanup(func() { app.Version = was })
	e := NewEnv()
	e.Exe = filepath.Join(prefix, "bin", "coder")
	for name, text := range map[string]string{"bin/coder": "#!/bin/sh\necho coder 1.2.3\n", "share/coder/installed": how + "\n"} {
		at := filepath.Join(prefix, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(text), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	e.Environ, e.Dir, e.Stdin = []string{"HOME=" + t.TempDir()}, t.TempDir(), strings.NewReader("")
	e.Terminal = func() (in, out *os.File, ok bool) { return nil, nil, false }
	return &e, func(args ...string) string {
		var out bytes.Buffer
		e.Args, e.Stdout, e.Stderr = append([]string{"update"}, args...), &out, &out
		return fmt.Sprintf("%d %s", Main(e), &out)
	}
}

// answers checks the exit code, what was said, and the version of the program.
func answers(t *testing.T, env *Env, got, want, version string) {
	t.Helper()
	for part := range strings.SplitSeq(want, "…") {
		if !strings.Contains(got, part) {
			t.Errorf("it said %q, want %q", got, want)
		}
	}
	if text, err := os.ReadFile(env.Exe); err != nil || !strings.Contains(string(text), "coder "+version+"\n") {
		t.Errorf("the program is %q: %v", text, err)
	}
}

func TestUpdateReplacesOnlyWhatCameInAnArchive(t *testing.T) {
	env, run := updating(t, "archive coder_1.2.3.tar.gz")
	answers(t, env, run(), "1 coder: this build of coder does not know where newer versions are", "1.2.3")
	released(t, env, "1.2.4")
	answers(t, env, run("--check"), "0 coder 1.2.4 is available; this is coder 1.2.3.\n    coder update\n", "1.2.3")
	answers(t, env, run(), "0 Downloading coder 1.2.4 …Updated coder 1.2.3 to 1.2.4.", "1.2.4")
	answers(t, env, run("--rollback"), "0 Restored coder 1.2.3.", "1.2.3")
	answers(t, env, run("--rollback"), "0 Restored coder 1.2.4.", "1.2.4")
	for how, want := range map[string]string{
		"npm":  "0 …npm update -g coder-agent\nNothing was changed",
		"pip":  "0 …pip install --upgrade coder-agent\nNothing was changed",
		"deb":  "0 …sudo apt install ./PACKAGE.deb\nNothing was changed",
		"rpm":  "0 …sudo rpm -U PACKAGE.rpm\nNothing was changed",
		"make": "0 …git pull && make install, with the same PREFIX\nNothing was changed",
		"odd":  "1 …coder does not know how it was installed, so it does not replace itself",
	} {
		env, run := updating(t, how)
		released(t, env, "1.2.4")
		answers(t, env, run(), want, "1.2.3")
		answers(t, env, run("--check"), "0 coder 1.2.4 is available", "1.2.3")
		answers(t, env, run("--rollback"), "1 …does not know how…", "1.2.3")
	}
}

func TestUpdateUsesTheProxyAndTheAuthoritiesOfTheSettings(t *testing.T) {
	env, run := updating(t, "archive")
	server := httptest.NewTLSServer(signed(t, env, "1.2.4"))
	t.Cleanup(server.Close)
	env.Releases.Address = "https://example.com" // the name in the server's certificate
	var asked string
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.Method + " " + r.Host
		there, err := net.Dial("tcp", server.Listener.Addr().String())
		here, _, wrong := http.NewResponseController(w).Hijack()
		if errors.Join(err, wrong) != nil {
			t.Error(err, wrong)
			return
		}
		_, _ = io.WriteString(here, "HTTP/1.1 200 OK\r\n\r\n")
		go func() { _, _ = io.Copy(there, here); _ = there.Close() }()
		_, _ = io.Copy(here, there)
		_ = here.Close()
	}))
	t.Cleanup(proxy.Close)
	authority := filepath.Join(t.TempDir(), "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(authority, text, 0o600); err != nil {
		t.Fatal(err)
	}
	through := []string{"-s", "provider.proxy=" + proxy.URL}
	answers(t, env, run(through...), "1 …certificate…", "1.2.3")
	through = append(through, "-s", "provider.ca_file="+authority)
	answers(t, env, run(through...), "0 …Updated coder 1.2.3 to 1.2.4.", "1.2.4")
	if asked != "CONNECT example.com:443" {
		t.Errorf("the proxy was asked for %q", asked)
	}
	broken := append(slices.Clone(through[:2]), "-s", "provider.ca_file=/nowhere")
	answers(t, env, run(broken...), "provider.ca_file: …", "1.2.4")
	answers(t, env, run(append(broken, "--rollback")...), "0 Restored coder 1.2.3.", "1.2.3")
}

func TestUpdateGoesToNoOlderVersion(t *testing.T) {
	env, run := updating(t, "archive")
	released(t, env, "1.2.2")
	answers(t, env, run(), "1 coder: the newest release is coder 1.2.2, which is not newer than this coder (1.2.3)", "1.2.3")
	released(t, env, "1.2.3")
	answers(t, env, run(), "0 coder 1.2.3 is the newest version.", "1.2.3")
	other := env.Releases.Key
	released(t, env, "1.2.4")
	env.Releases.Key = other
	answers(t, env, run(), "1 coder: the signature of the release is wrong", "1.2.3")
}

// A newer version is looked for where your settings ask for it, once a day.
func TestANewerVersionIsLookedForOnceADay(t *testing.T) {
	env, _ := updating(t, "archive")
	released(t, env, "1.2.4")
	now := time.Date(2026, 11, 19, 12, 0, 0, 0, time.UTC)
	env.Now = func() time.Time { return now }
	look := func() string {
		env.Args = nil
		inv := &invocation{Env: *env}
		inv.loadSettings(&flags{})
		a, err := inv.newApp(func(string) {})
		if err != nil {
			t.Fatal(err)
		}
		return a.NewerVersion(t.Context())
	}
	project := filepath.Join(env.Dir, ".coder", "config.json")
	own := filepath.Join(env.Getenv("HOME"), ".coder", "config.json")
	write := func(file, text string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	write(project, `{"update": {"check": true}}`)
	if got := look(); got != "" {
		t.Errorf("a project made coder look, and it found %q", got)
	}
	write(own, `{"update": {"check": true}}`)
	for _, c := range []struct {
		later time.Duration
		want  string
	}{{0, "1.2.4"}, {0, ""}, {23 * time.Hour, ""}, {2 * time.Hour, "1.2.4"}, {-time.Hour, ""}, {-48 * time.Hour, "1.2.4"}} {
		now = now.Add(c.later)
		if got := look(); got != c.want {
			t.Errorf("%v later it found %q, want %q", c.later, got, c.want)
		}
	}
	now = now.Add(25 * time.Hour)
	env.Releases.Key = ""
	if got := look(); got != "" {
		t.Errorf("without a key it found %q", got)
	}
}
