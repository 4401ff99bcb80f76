package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"coder/internal/host/disk"
)

// fixtureSessions are those that tools/fixtures.sh has an earlier version play.
var fixtureSessions = []string{"agent", "approved", "asked", "denied", "edit", "undone"}

// fixturePlace is where the sessions of a fixture were written: their signatures
// hold there and nowhere else.
const fixturePlace = "/tmp/coder-fixture"

// unpackFixture lays what an earlier version kept into dir.
func unpackFixture(t *testing.T, commit, dir string) *program {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata/fixtures", commit+".tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for in := tar.NewReader(z); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, filepath.FromSlash(h.Name))
		switch text, err := io.ReadAll(in); {
		case err != nil:
			t.Fatal(err)
		case h.Typeflag == tar.TypeDir:
			err = os.MkdirAll(path, 0o700)
			fallthrough
		default:
			if h.Typeflag == tar.TypeReg {
				err = os.WriteFile(path, text, h.FileInfo().Mode().Perm())
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &program{t: t, self: filepath.Join(dir, "coder"), ws: filepath.Join(dir, "ws")}
	p.env = []string{"HOME=" + filepath.Join(dir, "home"), "PATH=" + os.Getenv("PATH"), noRaceWait}
	if err := os.Symlink(self, p.self); err != nil {
		t.Fatal(err)
	}
	return p
}

// does runs coder and holds its exit code and words against what is wanted.
func (p *program) does(code int, words []string, args ...string) {
	p.t.Helper()
	out, errs, got := p.run(args...)
	if got != code {
		p.t.Errorf("coder %q: code %d, want %d:\n%s%s", args, got, code, out, errs)
	}
	for _, w := range words {
		if !strings.Contains(out+errs, w) {
			p.t.Errorf("coder %q does not say %q:\n%s%s", args, w, out, errs)
		}
	}
	for _, never := range []string{"is damaged", "torn-", "panic", "not being saved"} {
		if strings.Contains(out+errs, never) {
			p.t.Errorf("coder %q says %q:\n%s%s", args, never, out, errs)
		}
	}
}

// TestSessionsOfEarlierVersions opens what earlier versions wrote, in another folder
// than it was written in. CODER_FIXTURES asks for more than one copy.
func TestSessionsOfEarlierVersions(t *testing.T) {
	copies, _ := strconv.Atoi(os.Getenv("CODER_FIXTURES"))
	why := map[string]struct{ resumed, undo string }{
		"fd443be":  {"written by an earlier version of coder, which did not sign records", "an earlier version of coder made"},
		"50151c53": {"the log comes from another machine or folder", "coder did not make this session's changes on this machine and in this folder"},
	}
	for commit, why := range why {
		t.Run(commit, func(t *testing.T) {
			opened := 0
			for range max(copies, 1) {
				p := unpackFixture(t, commit, t.TempDir())
				next := p.file("next", "want what now\ncall write {\"path\": \"next.txt\", \"content\": \"n\\n\"}\n---\nsay continued")
				p.does(0, fixtureSessions, "sessions")
				p.does(0, []string{"edit"}, "why", "b.txt")
				for _, id := range fixtureSessions {
					p.does(0, nil, "show", id)
					for _, format := range []string{"md", "json", "html"} {
						p.does(0, nil, "export", id, "--format", format)
					}
					p.does(0, []string{"all", "are intact"}, "audit", "verify", id)
					if id == "asked" { // what was asked then is asked again, and waits for an answer
						p.does(31, nil, "-p", "-r", id, "--on-ask", "park", "--script", next)
						p.respond(id, "--option", "approve", "--script", p.file("goes-on", "say touched"))
						if _, err := os.Stat(filepath.Join(p.ws, id)); err != nil {
							t.Error("what was approved did not run: ", err)
						}
						p.does(0, []string{"removed: asked"}, "-p", "-r", id, "--script", next, "/undo all")
					}
					words := []string{"continued"}
					if id == "edit" {
						words = append(words, why.resumed, "changes so far cannot be undone")
					}
					p.does(0, words, "-p", "-r", id, "--auto-approve", "--script", next, "what now")
					p.does(0, []string{"removed: next.txt"}, "-p", "-r", id, "--script", next, "/undo")
					if id == "edit" {
						p.does(0, []string{"nothing to undo", why.undo}, "-p", "-r", id, "--script", next, "/undo")
					}
					p.does(0, []string{"are intact"}, "audit", "verify", id)
					if torn, _ := filepath.Glob(filepath.Join(p.ws, ".coder/log/*/torn-*")); len(torn) > 0 {
						t.Errorf("%s: records were set aside: %v", id, torn)
					}
					opened++
				}
				if t.Failed() {
					return
				}
			}
			t.Logf("%d sessions opened, continued, undone", opened)
		})
	}
}

// TestSignedSessionsOfEarlierVersions opens what a version that signed its records wrote,
// where it was written: there everything holds that held then.
func TestSignedSessionsOfEarlierVersions(t *testing.T) {
	if real, err := filepath.EvalSymlinks(filepath.Dir(fixturePlace)); err != nil || real != filepath.Dir(fixturePlace) {
		t.Skip("the folder of the fixtures is called otherwise here")
	}
	const commit = "50151c53"
	held, err := os.OpenFile(fixturePlace+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Skip(err)
	}
	defer held.Close()
	dir := filepath.Join(fixturePlace, commit)
	if err := errors.Join(disk.Lock(held.Fd()), os.MkdirAll(fixturePlace, 0o700), os.Mkdir(dir, 0o700)); err != nil {
		t.Skip(err) // another run of this test is there
	}
	t.Cleanup(func() { os.RemoveAll(dir); os.Remove(fixturePlace); os.Remove(fixturePlace + ".lock") })
	p := unpackFixture(t, commit, dir)
	next := p.file("next", "say fine")
	p.does(0, []string{"match this machine"}, "audit", "verify", "edit")
	out, errs, _ := p.run("-p", "-r", "edit", "--script", next, "more")
	if strings.Contains(errs, "grants nothing") {
		t.Errorf("a signed session is not believed: %s%s", out, errs)
	}
	p.does(0, []string{"removed: c.txt"}, "-p", "-r", "edit", "--script", next, "/undo all")
	p.does(0, []string{"restored: a.txt", "removed: b.txt"}, "-p", "-r", "edit", "--script", next, "/undo")
	p.does(0, []string{"restored: a.txt"}, "-p", "-r", "edit", "--script", next, "/redo")
	p.does(0, nil, "-p", "-r", "undone", "--script", next, "/redo")
	if text, err := os.ReadFile(filepath.Join(p.ws, "d.txt")); string(text) != "gone\n" {
		t.Errorf("d.txt holds %q, %v", text, err)
	}
	p.does(31, nil, "-p", "-r", "asked", "--on-ask", "park", "--script", next)
	p.respond("asked", "--option", "approve", "--script", p.file("goes-on", "say touched"))
	if _, err := os.Stat(filepath.Join(p.ws, "asked")); err != nil {
		t.Error("what was asked by the earlier version and approved did not run: ", err)
	}
	slices.Sort(fixtureSessions)
	for _, id := range fixtureSessions {
		p.does(0, []string{fmt.Sprintf("session %s: all", id)}, "audit", "verify", id)
	}
}
