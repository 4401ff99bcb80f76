package review_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"coder/internal/report/review"
)

const diff = `diff --git a/a.go b/a.go
--- a/a.go
+++ b/a.go
@@ -1,4 +1,4 @@ package a
 one
-old two
+new two = 2
 three
 four
@@ -10,2 +10,1 @@
 ten
-eleven is gone
diff --git a/b b.txt b/b b.txt
new file mode 100644
--- /dev/null
+++ b/b b.txt	
@@ -0,0 +1,2 @@
+++ looks like a heading
+}
diff --git a/gone.go b/gone.go
--- a/gone.go
+++ /dev/null
@@ -1 +0,0 @@
-was here
`

func TestFindingsAreToldWhereTheirQuoteStands(t *testing.T) {
	c, err := review.Parse(diff)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(c.Files(), ","); got != "a.go,b b.txt" {
		t.Errorf("files %q", got)
	}
	for _, tt := range []struct {
		file, quote string
		line, want  int // 0: dropped
	}{
		{"a.go", "new two = 2", 2, 2},
		{"./a.go", "  new  two = 2 ", 2, 2},
		{"a.go", "w two = 2", 99, 2},
		{"a.go", "new two", 2, 0}, // too few letters to say which line is meant
		{"a.go", "three", 3, 0},   // not of the change
		{"a.go", "old two", 1, 2}, // what took its place
		{"a.go", "eleven is gone", 11, 10},
		{"b b.txt", "++ looks like a heading", 5, 1},
		{"b b.txt", "}", 2, 2},
		{"a.go", "}", 2, 0},
		{"a.go", "", 2, 0},
		{"gone.go", "was here", 1, 0},
		{"none.go", "new two = 2", 2, 0},
	} {
		got := c.Filter(review.Report{Findings: []review.Finding{{File: tt.file, Line: tt.line, Quote: tt.quote, Severity: "note"}}})
		line := 0
		if len(got.Findings) > 0 {
			line = got.Findings[0].Line
		}
		if line != tt.want || (got.Dropped == 1) != (tt.want == 0) || (got.Corrected == 1) != (tt.want != 0 && tt.want != tt.line) {
			t.Errorf("%s:%d %q: line %d, want %d (%d dropped, %d corrected)", tt.file, tt.line, tt.quote, line, tt.want, got.Dropped, got.Corrected)
		}
	}
	if got := c.Filter(review.Report{Findings: []review.Finding{{File: "a.go", Line: 2, Quote: "new two = 2", Severity: "fatal"}}}); got.Dropped != 1 {
		t.Error("a severity that is none was kept")
	}
}

func TestAChangeThatIsNotCheckedOutIsSaid(t *testing.T) {
	c, err := review.Parse("--- a\n+++ a\n@@ -1 +1 @@\n-x\n+y\n")
	if err != nil {
		t.Fatal(err)
	}
	for text, ok := range map[string]bool{"y\n": true, "y\r\n": true, "x\n": false, "": false} {
		err := c.CheckContent(func(string) ([]byte, error) { return []byte(text), nil })
		if (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
	}
	if c.CheckContent(func(string) ([]byte, error) { return nil, errors.New("gone") }) == nil {
		t.Error("a file that cannot be read is not checked out")
	}
}

func TestWhatIsNoDiffIsRefused(t *testing.T) {
	for _, text := range []string{"hello\n", "--- a\n+++ b\n@@ -1 @@\n", "--- a\n+++ b\n@@ -1 +x,1 @@\n", "--- a\n+++ b\n@@ -1,-5 +1 @@\n"} {
		if _, err := review.Parse(text); err == nil {
			t.Errorf("%q was read", text)
		}
	}
	for _, text := range []string{"", "\n", "diff --git a/x b/x\nold mode 100644\nnew mode 100755\n"} {
		if c, err := review.Parse(text); err != nil || len(c.Files()) > 0 {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestReportsForServices(t *testing.T) {
	r := review.Report{Summary: "s"}
	for range 60 {
		r.Findings = append(r.Findings, review.Finding{File: "a:b/c d.go", Line: 3, Quote: "x := 1", Severity: "warning", Title: "t", Detail: "d"})
	}
	decode := func(format string) (v map[string]any) {
		var out bytes.Buffer
		if err := r.Write(&out, format, ""); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(out.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		return v
	}
	run := decode("sarif")["runs"].([]any)[0].(map[string]any)
	first := run["results"].([]any)[0].(map[string]any)
	at := first["locations"].([]any)[0].(map[string]any)["physicalLocation"].(map[string]any)["artifactLocation"].(map[string]any)["uri"]
	if len(run["results"].([]any)) != 60 || at != "./a:b/c%20d.go" || first["level"] != "warning" {
		t.Errorf("sarif: %v", first)
	}
	check := decode("github")
	output := check["output"].(map[string]any)
	if n := len(output["annotations"].([]any)); n != 50 || check["conclusion"] != "neutral" || !strings.Contains(output["summary"].(string), "10 more findings") {
		t.Errorf("github: %d annotations, %v", n, check)
	}
	r.Findings[0].Detail = "" // GitHub refuses an annotation without a message
	message := decode("sarif")["runs"].([]any)[0].(map[string]any)["results"].([]any)[0].(map[string]any)["message"].(map[string]any)["text"]
	annotation := decode("github")["output"].(map[string]any)["annotations"].([]any)[0].(map[string]any)["message"]
	if message != "t" || annotation != "t" {
		t.Errorf("without detail: %q, %q", message, annotation)
	}
	for severity, want := range map[string]bool{"error": false, "warning": true, "note": true, "never": false} {
		if r.HasSeverity(severity) != want {
			t.Errorf("reaches %s: %v", severity, !want)
		}
	}
}
