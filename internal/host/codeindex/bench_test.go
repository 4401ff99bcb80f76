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
		if err := x.update(b.Context(), false); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCheck(b *testing.B) {
	x := New(goSources(b), Options{})
	if err := x.update(b.Context(), true); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := x.update(b.Context(), true); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkQuery(b *testing.B) {
	x := New(goSources(b), Options{})
	if err := x.update(b.Context(), false); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		x.rank(x.current.Load(), parseQuery("where do we parse the http cookie header"), Query{Limit: 10})
	}
}

// BenchmarkSearch is what a query takes that looks for changed files too.
func BenchmarkSearch(b *testing.B) {
	x := New(goSources(b), Options{})
	if err := x.update(b.Context(), false); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := x.Search(b.Context(), Query{Text: "where do we parse the http cookie header"}); err != nil {
			b.Fatal(err)
		}
	}
}
