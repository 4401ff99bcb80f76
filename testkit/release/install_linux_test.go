package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

func TestInstallLeavesNoPartOnAFullDisk(t *testing.T) {
	home := t.TempDir()
	full := t.TempDir()
	if err := syscall.Mount("tmpfs", full, "tmpfs", 0, "size=8k"); err != nil {
		t.Skipf("cannot mount a small disk: %v", err)
	}
	defer func() { _ = syscall.Unmount(full, 0) }()
	if err := os.MkdirAll(filepath.Join(full, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	big := packed(t, entry{name: "bin/coder", mode: 0o755, data: append([]byte("#!/bin/sh\necho coder 1.2.3\nexit\n"), make([]byte, 64<<10)...)})
	out, code := install(t, home, nil, filepath.Join(beside(t, big, sumsOf(big)), testArchive), "--prefix", full)
	if code == 0 || !strings.Contains(out, "cannot write") || slices.Contains(files(t, full), "bin/coder") {
		t.Errorf("it ended with %d and left %q: %s", code, files(t, full), out)
	}
	if slices.ContainsFunc(files(t, full), func(name string) bool { return strings.Contains(name, ".new-") }) {
		t.Errorf("it left a part: %q", files(t, full))
	}
}
