package undo_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"coder/internal/host/program"
	"coder/internal/host/workspace"
	"coder/internal/record/undo"
	"coder/internal/tool"
)

// project makes a directory of n source files, about 10 kB each.
func project(b *testing.B, n int, git bool) string {
	b.Helper()
	dir := b.TempDir()
	random := rand.New(rand.NewPCG(1, 2))
	for i := range n {
		sub := filepath.Join(dir, fmt.Sprintf("p%d/q%d/r%d", i%10, i%50, i%250))
		if err := os.MkdirAll(sub, 0o755); err != nil {
			b.Fatal(err)
		}
		var text strings.Builder
		for range random.IntN(400) {
			fmt.Fprintf(&text, "line %d of some words here\n", random.Int())
		}
		if err := os.WriteFile(filepath.Join(sub, fmt.Sprintf("f%d.go", i)), []byte(text.String()), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, ".gitignore"), []byte("*.log\n/bin/\n*.o\nnode_modules/\n*.tmp\nbuild/\n*.swp\n"), 0o644); err != nil {
		b.Fatal(err)
	}
	time.Sleep(time.Second) // no longer fresh
	if git {
		for _, args := range []string{"init -q", "add -A", "-c user.name=a -c user.email=a@b commit -qm all"} {
			cmd := exec.Command("git", strings.Fields(args)...)
			cmd.Dir = dir
			if out, err := cmd.CombinedOutput(); err != nil {
				b.Skipf("git %s: %v %s", args, err, out)
			}
		}
	}
	return dir
}

func benchKeeper(b *testing.B, dir string) *undo.Keeper {
	b.Helper()
	ws, err := workspace.Open(dir)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { ws.Close() })
	store := undo.OpenStore(filepath.Join(b.TempDir(), "undo"), undo.StoreOptions{Now: time.Now})
	b.Cleanup(func() { store.Close() })
	return undo.New(ws, store, undo.Options{Now: time.Now, Launcher: program.NewOutside([]string{"PATH=" + os.Getenv("PATH")}, "/nowhere")})
}

var command = []tool.Effect{{Kind: tool.Exec, Target: "make"}}

// The first command of a session, and those after it, among 5,000 files.
func BenchmarkCommand(b *testing.B) {
	for _, git := range []bool{true, false} {
		dir := project(b, 5000, git)
		b.Run(fmt.Sprintf("git=%v/first", git), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				k := benchKeeper(b, dir)
				b.StartTimer()
				if _, err := k.SaveOriginals(b.Context(), command); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("git=%v/later", git), func(b *testing.B) {
			k := benchKeeper(b, dir)
			kept, err := k.SaveOriginals(b.Context(), command)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if kept, err = k.SaveOriginals(b.Context(), command); err != nil {
					b.Fatal(err)
				}
			}
			_ = kept
		})
		b.Run(fmt.Sprintf("git=%v/changes", git), func(b *testing.B) {
			k := benchKeeper(b, dir)
			for i := 0; b.Loop(); i++ {
				kept, err := k.SaveOriginals(b.Context(), command)
				if err != nil {
					b.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, "p0/q0/r0/f0.go"), []byte(fmt.Sprint(i)), 0o644); err != nil {
					b.Fatal(err)
				}
				if c, err := k.ChangesSince(b.Context(), kept); err != nil || len(c) != 1 {
					b.Fatal(c, err)
				}
			}
		})
	}
}

// A call that writes one file.
func BenchmarkWrite(b *testing.B) {
	dir := b.TempDir()
	k := benchKeeper(b, dir)
	name := filepath.Join(dir, "f")
	for i := 0; b.Loop(); i++ {
		kept, err := k.SaveOriginals(b.Context(), []tool.Effect{{Kind: tool.Write, Target: "f"}})
		if err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(name, fmt.Appendf(nil, "%d %s", i, strings.Repeat("some text ", 1000)), 0o644); err != nil {
			b.Fatal(err)
		}
		if c, err := k.ChangesSince(b.Context(), kept); err != nil || len(c) != 1 {
			b.Fatal(c, err)
		}
	}
}
