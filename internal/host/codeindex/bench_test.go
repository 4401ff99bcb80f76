package codeindex

import (
	"go/build"
	"os"
	"path/filepath"
	"testing"

	"coder/internal/host/workspace"
)

// goSources is the tree of the Go distribution, or what INDEXED names.
func goSources(tb testing.TB) *workspace.Workspace {
	tb.Helper()
	dir := filepath.Join(build.Default.GOROOT, "src")
	if named := os.Getenv("INDEXED"); named != "" {
		dir = named
	}
	ws, err := workspace.Open(dir)
	if err != nil {
		tb.Skipf("no tree to index: %v", err)
	}
	tb.Cleanup(func() { ws.Close() })
	return ws
}

func BenchmarkBuild(b *testing.B) {
	ws := goSources(b)
	for b.Loop() {
		x := New(ws, Options{})
		if err := x.update(b.Context(), soon); err != nil {
			b.Fatal(err)
		}
	}
}

// cached is a copy of the sources with an index on disk: a workspace that can
// be written to.
func cached(b *testing.B) *workspace.Workspace {
	b.Helper()
	dir := b.TempDir()
	if err := os.CopyFS(dir, os.DirFS(goSources(b).Root())); err != nil {
		b.Skipf("no tree to index: %v", err)
	}
	ws, err := workspace.Open(dir)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { ws.Close() })
	x := New(ws, Options{CacheDir: ".coder/cache"})
	if err := x.refresh(b.Context(), now); err != nil {
		b.Fatal(err)
	}
	if err := x.save(b.Context(), x.current.Load()); err != nil {
		b.Fatal(err)
	}
	x.Close()
	return ws
}

// BenchmarkFirstAnswer is what the first query takes in a process that finds
// the index of another.
func BenchmarkFirstAnswer(b *testing.B) {
	ws := cached(b)
	for b.Loop() {
		x := New(ws, Options{CacheDir: ".coder/cache"})
		if _, err := x.Search(b.Context(), Query{Text: "where do we parse the http cookie header"}); err != nil {
			b.Fatal(err)
		}
		x.Close()
	}
	if info, err := ws.Stat(".coder/cache/code.index"); err == nil {
		b.ReportMetric(float64(info.Size())/1e6, "MB")
	}
}

func BenchmarkCheck(b *testing.B) {
	x := New(goSources(b), Options{})
	if err := x.update(b.Context(), now); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := x.update(b.Context(), now); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkQuery(b *testing.B) {
	x := New(goSources(b), Options{})
	if err := x.update(b.Context(), soon); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		x.answer(x.current.Load(), newQuestion("where do we parse the http cookie header"), Query{Limit: 10})
	}
}

// BenchmarkSearch is what a query takes that looks for changed files too.
func BenchmarkSearch(b *testing.B) {
	x := New(goSources(b), Options{})
	if err := x.update(b.Context(), soon); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := x.Search(b.Context(), Query{Text: "where do we parse the http cookie header"}); err != nil {
			b.Fatal(err)
		}
	}
}
