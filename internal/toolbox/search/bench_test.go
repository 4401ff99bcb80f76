package search_test

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// BenchmarkGrep searches the sources of the Go distribution.
func BenchmarkGrep(b *testing.B) {
	dir := filepath.Join(runtime.GOROOT(), "src")
	if _, err := os.Stat(dir); err != nil {
		b.Skip("the Go sources are not installed")
	}
	tools := openAt(b, dir)
	for name, args := range map[string]string{
		"literal":      `{"pattern":"ErrUnexpectedEOF","max_matches":1000}`,
		"ignore case":  `{"pattern":"errunexpectedeof","ignore_case":true,"max_matches":1000}`,
		"method":       `{"pattern":"func \\(\\w+ \\*\\w+\\) NeverFound\\w*\\(","max_matches":1000}`,
		"alternatives": `{"pattern":"(TODO|FIXME|XXX)\\(gri\\w+\\)","max_matches":1000}`,
		"classes":      `{"pattern":"\\b[A-Z]{25,}_[A-Z]+\\b","max_matches":1000}`,
		"no literal":   `{"pattern":"[qz]{7,}","max_matches":1000}`,
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				b.ReportMetric(float64(must(b, tools, "grep", args).Count), "matches")
			}
		})
	}
}

func BenchmarkGlob(b *testing.B) {
	dir := filepath.Join(runtime.GOROOT(), "src")
	if _, err := os.Stat(dir); err != nil {
		b.Skip("the Go sources are not installed")
	}
	tools := openAt(b, dir)
	for b.Loop() {
		must(b, tools, "glob", `{"pattern":"**/*_test.go"}`)
	}
}
