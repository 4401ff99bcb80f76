package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The picture in the clipboard comes from the first program that has one, and never from one in
// the workspace.
func TestThePictureInTheClipboard(t *testing.T) {
	bin, err := os.MkdirTemp(".", "bin") // not where commands may write
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(bin) })
	if bin, err = filepath.Abs(bin); err != nil {
		t.Fatal(err)
	}
	put := func(dir, name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	work := t.TempDir()
	put(work, "xclip", "printf 'GIF89a evil'")
	open := func(environ ...string) *Workspace {
		env := Env{Environ: append(environ, "HOME="+t.TempDir(), "PATH="+work+":"+bin), Dir: work, Now: time.Now}
		s, err := Load(env, Options{})
		if err != nil {
			t.Fatal(err)
		}
		a, err := New(env, Options{}, s, func(string) {})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	ask := func(want string, environ ...string) {
		t.Helper()
		img, err := open(environ...).ReadClipboard(t.Context())
		got := string(img.Data)
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	ask("install wl-paste", "DISPLAY=:0")
	put(bin, "xclip", "printf 'GIF89a mine'")
	put(bin, "wl-paste", "exit 1")
	ask("GIF89a mine", "DISPLAY=:0", "WAYLAND_DISPLAY=w")
	ask("no image in the clipboard", "WAYLAND_DISPLAY=w")
	put(bin, "xclip", "/usr/bin/head -c 6000000 /dev/zero")
	ask("not a PNG", "DISPLAY=:0")
	ask("deepseek-chat does not accept images", "DISPLAY=:0", "CODER_MODEL=deepseek-chat", "CODER_BASE_URL=http://127.0.0.1:1")
}
