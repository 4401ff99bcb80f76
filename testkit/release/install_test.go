package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"coder/internal/host/program"
)

const testArchive = "coder_1.2.3_test_any.tar.gz"

// packed is an archive whose program is a shell script that prints its version.
func packed(t *testing.T, entries ...entry) []byte {
	t.Helper()
	if entries == nil {
		entries = []entry{
			{name: "bin/coder", mode: 0o755, data: []byte("#!/bin/sh\necho coder 1.2.3\n")},
			{name: "share/man/man1/coder.1", mode: 0o644, data: []byte(".TH CODER 1\n")},
			{name: "share/zsh/site-functions/_coder", mode: 0o644, data: []byte("#compdef coder\n")},
		}
	}
	var b bytes.Buffer
	if err := writeTarGz(&b, "coder_1.2.3", entries, time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// beside writes an archive and a checksum for it into a new folder.
func beside(t *testing.T, archive []byte, sums string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range map[string][]byte{testArchive: archive, "SHA256SUMS": []byte(sums)} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func sumsOf(archive []byte) string {
	return fmt.Sprintf("%x  %s\n", sha256.Sum256(archive), testArchive)
}

// install runs install.sh with an empty home.
func install(t *testing.T, home string, env []string, args ...string) (out string, code int) {
	t.Helper()
	script, err := filepath.Abs("../../install.sh")
	if err != nil {
		t.Fatal(err)
	}
	sh, err := program.LookPath("sh")
	if err != nil {
		t.Skip("there is no sh")
	}
	cmd := program.TrustedCommand(t.Context(), sh, append([]string{script}, args...)...)
	cmd.Env = append([]string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + t.TempDir(), "no_proxy=*"}, env...)
	text, _ := cmd.CombinedOutput()
	return string(text), cmd.ProcessState.ExitCode()
}

// files lists what is below a folder.
func files(t *testing.T, dir string) (list []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			rel, _ := filepath.Rel(dir, name)
			list = append(list, rel)
		}
		return err
	})
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return list
}

func TestInstallPutsProgramManualAndCompletionsBelowThePrefix(t *testing.T) {
	archive := packed(t)
	dir := beside(t, archive, sumsOf(archive))
	server := httptest.NewServer(http.FileServer(http.Dir(dir)))
	defer server.Close()
	for _, from := range []string{filepath.Join(dir, testArchive), server.URL + "/" + testArchive} {
		home := t.TempDir()
		out, code := install(t, home, nil, from)
		if code != 0 {
			t.Fatalf("from %s it ended with %d: %s", from, code, out)
		}
		want := []string{
			"bin/coder", "bin/coder-agent", "share/coder/installed", "share/man/man1/coder-agent.1", "share/man/man1/coder.1",
			"share/zsh/site-functions/_coder",
		}
		if got := files(t, filepath.Join(home, ".local")); !slices.Equal(got, want) {
			t.Errorf("from %s there are %q, want %q", from, got, want)
		}
		if !strings.Contains(out, "coder 1.2.3") || !strings.Contains(out, "PATH lacks "+home+"/.local/bin") {
			t.Errorf("it says %q", out)
		}
		again, code := install(t, home, []string{"PATH=" + home + "/.local/bin:" + os.Getenv("PATH")}, from)
		if code != 0 || strings.Contains(again, "PATH lacks") {
			t.Errorf("a second time it ended with %d: %s", code, again)
		}
	}
}

func TestInstallChangesNothingUnlessTheArchiveIsTheOneReleased(t *testing.T) {
	archive := packed(t)
	cut := archive[:len(archive)-20]
	flipped := bytes.Clone(archive)
	flipped[len(flipped)/2] ^= 1
	way := packed(t, entry{name: "bin/coder", mode: 0o755, data: []byte("#!/bin/sh\n")}, entry{name: "../../out", mode: 0o644})
	dead := packed(t, entry{name: "bin/coder", mode: 0o755, data: []byte("#!/bin/sh\nexit 1\n")})
	for name, c := range map[string]struct {
		archive   []byte
		sums, why string
	}{
		"a wrong sum":               {archive, sumsOf([]byte("other")), "checksum"},
		"no line for it":            {archive, strings.Replace(sumsOf(archive), testArchive, "other.tar.gz", 1), "no line"},
		"no sums":                   {archive, "", "no line"},
		"an archive that is cut":    {cut, sumsOf(archive), "checksum"},
		"an archive that was bent":  {flipped, sumsOf(archive), "checksum"},
		"a cut archive, right sum":  {cut, sumsOf(cut), "coder_1.2.3_test_any"},
		"no archive, right sum":     {[]byte("hello"), sumsOf([]byte("hello")), "no archive"},
		"files that lead out":       {way, sumsOf(way), "lead out"},
		"a program that cannot run": {dead, sumsOf(dead), "does not run here"},
	} {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			out, code := install(t, home, nil, filepath.Join(beside(t, c.archive, c.sums), testArchive))
			if code == 0 || !strings.Contains(out, c.why) {
				t.Errorf("it ended with %d: %s", code, out)
			}
			if got := files(t, home); len(got) > 0 {
				t.Errorf("it left %q", got)
			}
		})
	}
	home := t.TempDir()
	out, code := install(t, home, nil, "http://example.org/"+testArchive)
	if code == 0 || !strings.Contains(out, "not encrypted") || len(files(t, home)) > 0 {
		t.Errorf("from a plain address it ended with %d: %s", code, out)
	}
}

func TestInstallCutOnTheWayChangesNothing(t *testing.T) {
	archive := packed(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "SHA256SUMS") {
			fmt.Fprint(w, sumsOf(archive))
			return
		}
		w.Header().Set("Content-Length", fmt.Sprint(len(archive)))
		_, _ = w.Write(archive[:len(archive)/2])
	}))
	defer server.Close()
	home := t.TempDir()
	if out, code := install(t, home, nil, server.URL+"/"+testArchive); code == 0 || len(files(t, home)) > 0 {
		t.Errorf("it ended with %d and left %q: %s", code, files(t, home), out)
	}
}

func TestInstallLeavesTheOldProgramWhereItCannotWrite(t *testing.T) {
	archive := packed(t)
	from := filepath.Join(beside(t, archive, sumsOf(archive)), testArchive)
	home := t.TempDir()
	old := filepath.Join(home, ".local", "bin", "coder")
	if err := os.MkdirAll(filepath.Dir(old), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(old, []byte("old"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Run("a file where a folder should be", func(t *testing.T) {
		if err := os.WriteFile(filepath.Join(home, ".local", "share"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		out, code := install(t, home, nil, from)
		if text, _ := os.ReadFile(old); code == 0 || string(text) != "old" || !strings.Contains(out, "cannot make the folder") {
			t.Errorf("it ended with %d, the program is %q: %s", code, text, out)
		}
	})
}
