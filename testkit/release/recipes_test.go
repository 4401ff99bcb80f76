package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"coder/internal/host/program"
)

func TestRecipesNameTheArchivesThatWereMade(t *testing.T) {
	r := release{version: "1.2.3", out: t.TempDir(), address: "https://example.org/coder/"}
	for _, made := range targets {
		if err := r.write(archiveName(r.version, made)+".tar.gz", fmt.Append(nil, made)); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.recipes(); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		wants []string
		lint  string // what reads it, where it is there
	}{
		"coder-agent.rb": {[]string{`version "1.2.3"`, `"https://example.org/coder/coder_1.2.3_darwin_arm64.tar.gz"`}, "ruby -c"},
		"flake.nix":      {[]string{`version = "1.2.3"`, `"https://example.org/coder/${archive.name}"`}, "nix-instantiate --parse"},
		"Dockerfile":     {[]string{"coder_1.2.3_linux_${TARGETARCH}.tar.gz"}, "hadolint"},
	} {
		file := filepath.Join(r.out, name)
		text, err := os.ReadFile(file)
		for _, want := range c.wants {
			if err != nil || !strings.Contains(string(text), want) {
				t.Errorf("%s lacks %s: %v\n%s", name, want, err, text)
			}
		}
		words := strings.Fields(c.lint)
		tool, err := program.LookPath(words[0])
		if err != nil {
			t.Logf("%s is missing, so it did not read %s", words[0], name)
			continue
		}
		cmd := program.TrustedCommand(t.Context(), tool, append(words[1:], file)...)
		cmd.Env = []string{"HOME=" + t.TempDir()}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
	unnamed := release{version: "1.2.3", out: t.TempDir()}
	if err := unnamed.recipes(); err != nil {
		t.Fatal(err)
	}
	if got := files(t, unnamed.out); fmt.Sprint(got) != "[Dockerfile]" {
		t.Errorf("without an address there are %q", got)
	}
}

func TestKeysAreMadeOnceAndReadAgain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key.pem")
	if err := newKey(file); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key is %v: %v", info, err)
	}
	if err := newKey(file); err == nil {
		t.Error("it was overwritten")
	}
	next := filepath.Join(t.TempDir(), "next.pem")
	if err := newKey(next); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ address, key, next, want string }{
		{"", "", "", ""}, {"https://example.org/x", file, "", ""}, {"https://example.org/x", file, next, ""},
		{"", file, "", "needs both"}, {"https://example.org", "", "", "needs both"}, {"", "", next, "only a signed release"},
		{"http://example.org", file, "", "is not an https address"}, {"https://example.org/ -X x=y", file, "", "is not an https address"},
		{"https://example.org", filepath.Join(t.TempDir(), "none"), "", "no such file"},
	} {
		r := release{address: c.address}
		err := r.readKeys(c.key, c.next)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c, err)
		}
		if err == nil && c.key != "" && r.trust.Equal(r.sign.Public()) != (c.next == "") {
			t.Errorf("%+v: the programs trust the wrong key", c)
		}
	}
}
