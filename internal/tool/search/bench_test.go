package search_test

import (
	"cmp"
	"fmt"
	"go/build"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// goSources is a large tree that is there wherever Go is.
func goSources(b *testing.B) string {
	dir := filepath.Join(build.Default.GOROOT, "src")
	if _, err := os.Stat(dir); err != nil {
		b.Skip("the Go sources are not installed")
	}
	return dir
}

var patterns = []struct{ name, pattern, flags string }{
	{"literal", "ErrUnexpectedEOF", ""},
	{"ignore case", "errunexpectedeof", "-i"},
	{"method", `func \(\w+ \*\w+\) NeverFound\w*\(`, ""},
	{"alternatives", `(TODO|FIXME|XXX)\(gri\w+\)`, ""},
	{"classes", `\b[A-Z]{25,}_[A-Z]+\b`, ""},
	{"no literal", `[qz]{7,}`, ""},
	{"words", `\b\w{45,}\b`, ""},
	{"numbers", `\d{3}-\d{4}-\d+`, ""},
	{"dots", `^.{400,}$`, ""},
	{"spaces", `[^ ]\s+\S+\s+qq\w`, ""},
	{"far apart", `q.*z.*q.*Z.*q`, ""},
}

// BenchmarkGrep searches one tree with rg and with the tool, in turn, and
// reports how much longer than rg it takes.
func BenchmarkGrep(b *testing.B) {
	dir := goSources(b)
	rg, err := exec.LookPath("rg")
	if err != nil {
		b.Skip("rg is not installed")
	}
	tools := openAt(b, dir)
	for _, p := range patterns {
		b.Run(p.name, func(b *testing.B) {
			args := fmt.Sprintf(`{"pattern":%q,"ignore_case":%v,"max_matches":1000}`, p.pattern, p.flags != "")
			var times [2]time.Duration
			for b.Loop() {
				began := time.Now()
				// No match is an exit code of one.
				_, _ = exec.Command(rg, "--no-config", "--hidden", "--line-number", "--no-heading", "--regexp="+p.pattern, cmp.Or(p.flags, "--case-sensitive"), dir).Output()
				times[0] += time.Since(began)
				began = time.Now()
				must(b, tools, "grep", args)
				times[1] += time.Since(began)
			}
			b.ReportMetric(times[0].Seconds()*1000/float64(b.N), "rg-ms")
			b.ReportMetric(float64(times[1])/float64(times[0]), "tool/rg")
		})
	}
}

func BenchmarkGlob(b *testing.B) {
	tools := openAt(b, goSources(b))
	for b.Loop() {
		must(b, tools, "glob", `{"pattern":"**/*_test.go"}`)
	}
}

func BenchmarkGlob100000(b *testing.B) {
	dir := b.TempDir()
	for i := range 100_000 {
		name := fmt.Sprintf("%s/d%d/e%d/f%d.go", dir, i%10, i/10%100, i)
		if i < 1000 {
			if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
				b.Fatal(err)
			}
		}
		f, err := os.Create(name)
		if err != nil {
			b.Fatal(err)
		}
		f.Close()
	}
	tools := openAt(b, dir)
	for b.Loop() {
		must(b, tools, "glob", `{"pattern":"**/*7.go"}`)
	}
}
