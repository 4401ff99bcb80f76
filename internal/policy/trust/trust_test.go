package trust_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"coder/internal/policy/trust"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestTrustIsBoundToTheFolderAndToWhatItsSettingsSay(t *testing.T) {
	root, other := t.TempDir(), t.TempDir()
	book := trust.Registry{Path: filepath.Join(t.TempDir(), "home", "trust.json"), Now: time.Now}
	want := func(dir string, s trust.State) {
		t.Helper()
		if got, err := book.StateOf(dir); err != nil || got != s {
			t.Errorf("%v, %v; want %v", got, err, s)
		}
	}
	want(root, trust.Unknown)
	if err := book.Trust(root); err != nil {
		t.Fatal(err)
	}
	want(root, trust.Trusted)
	want(root+"/", trust.Trusted)
	want(other, trust.Unknown)

	write(t, filepath.Join(root, "main.go"), "package main")
	want(root, trust.Trusted)
	write(t, filepath.Join(root, ".coder", "config.json"), `{"permission":{"write":"allow"}}`)
	want(root, trust.Changed)
	if err := book.Trust(root); err != nil {
		t.Fatal(err)
	}
	want(root, trust.Trusted)
	write(t, filepath.Join(root, ".mcp.json"), `{}`)
	want(root, trust.Changed)
	if err := os.Remove(filepath.Join(root, ".mcp.json")); err != nil {
		t.Fatal(err)
	}
	want(root, trust.Trusted)
	if err := book.Revoke(root); err != nil {
		t.Fatal(err)
	}
	want(root, trust.Unknown)
}

func TestContentMovedFromOneFileToAnotherIsNotTheSame(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	write(t, filepath.Join(a, ".mcp.json"), "x")
	write(t, filepath.Join(b, ".coder", "config.json"), "x")
	ha, errA := trust.Hash(a)
	hb, errB := trust.Hash(b)
	if errA != nil || errB != nil || ha == hb {
		t.Errorf("%s, %s, %v, %v", ha, hb, errA, errB)
	}
}

func TestWithoutAHomeNothingIsTrusted(t *testing.T) {
	book := trust.Registry{Now: time.Now}
	if err := book.Trust(t.TempDir()); err == nil {
		t.Error("trust was given to nowhere")
	}
	if s, err := book.StateOf(t.TempDir()); err != nil || s != trust.Unknown {
		t.Errorf("%v, %v", s, err)
	}
}

func TestABrokenBookTrustsNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trust.json")
	write(t, path, "{not json")
	book := trust.Registry{Path: path, Now: time.Now}
	if s, err := book.StateOf(t.TempDir()); err == nil || s != trust.Unknown {
		t.Errorf("%v, %v", s, err)
	}
}
