package review

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"path"
	"strings"

	"coder/internal/core/jsonx"
)

// Formats are the formats of a report.
var Formats = []string{"text", "json", "sarif", "github"}

// Write writes the report in one of [Formats]; version is coder's version.
func (r Report) Write(w io.Writer, format, version string) error {
	var text []byte
	switch format {
	case "json":
		text = jsonx.MustMarshal(r)
	case "sarif":
		text = jsonx.MustMarshal(r.sarif(version))
	case "github":
		text = jsonx.MustMarshal(r.checkRun())
	default:
		_, err := io.WriteString(w, r.formatLines())
		return err
	}
	_, err := fmt.Fprintf(w, "%s\n", text)
	return err
}

// formatLines returns the report in the format of compilers: file:line: severity: title.
func (r Report) formatLines() string {
	var b strings.Builder
	for _, f := range r.Findings {
		fmt.Fprintf(&b, "%s:%d: %s: %s\n", f.File, f.Line, f.Severity, f.Title)
		for line := range strings.Lines(f.Detail) {
			b.WriteString("    " + strings.TrimRight(line, "\n") + "\n")
		}
	}
	if r.Summary != "" {
		b.WriteString(r.Summary + "\n")
	}
	return b.String()
}

type object = map[string]any

// sarif returns the report as SARIF 2.1.0.
func (r Report) sarif(version string) object {
	results := []object{}
	for _, f := range r.Findings {
		uri := (&url.URL{Path: f.File}).EscapedPath()
		if first, _, _ := strings.Cut(uri, "/"); strings.Contains(first, ":") {
			uri = "./" + uri
		}
		results = append(results, object{
			"ruleId": "review", "ruleIndex": 0, "level": f.Severity,
			"message": object{"text": strings.TrimSpace(f.Title + "\n\n" + f.Detail)},
			"locations": []object{{"physicalLocation": object{
				"artifactLocation": object{"uri": uri},
				"region":           object{"startLine": f.Line, "snippet": object{"text": f.Quote}},
			}}},
			"partialFingerprints": object{"coderReview/v1": f.fingerprint()},
		})
	}
	rule := object{"id": "review", "shortDescription": object{
		"text": "A model reviewed the change. Each finding is at a changed line.",
	}}
	driver := object{"name": "coder", "version": cmp.Or(version, "dev"), "rules": []object{rule}}
	return object{
		"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0",
		"runs": []object{{"tool": object{"driver": driver}, "columnKind": "utf16CodeUnits", "results": results}},
	}
}

// fingerprint identifies a finding wherever its line moves.
func (f Finding) fingerprint() string {
	sum := sha256.Sum256(json.RawMessage(strings.Join([]string{path.Clean(f.File), normalizeLine(f.Quote), f.Severity},
		"\x00")))
	return hex.EncodeToString(sum[:16])
}

// maxAnnotations is how many annotations GitHub accepts in one request.
const maxAnnotations = 50

// checkRun returns the report as the body of a request to GitHub for a check run, without head_sha.
func (r Report) checkRun() object {
	levels := map[string]string{"error": "failure", "warning": "warning", "note": "notice"}
	annotations := []object{}
	for _, f := range r.Findings[:min(len(r.Findings), maxAnnotations)] {
		annotations = append(annotations, object{
			"path": f.File, "start_line": f.Line, "end_line": f.Line,
			"annotation_level": levels[f.Severity], "title": f.Title, "message": cmp.Or(f.Detail, f.Title),
		})
	}
	conclusion, title := "success", "No findings"
	if n := len(r.Findings); n > 0 {
		conclusion, title = "neutral", fmt.Sprintf("%d finding(s)", n)
	}
	if r.HasSeverity("error") {
		conclusion = "failure"
	}
	summary := r.Summary
	if more := len(r.Findings) - len(annotations); more > 0 {
		summary += fmt.Sprintf("\n\n%d more findings are not shown.", more)
	}
	return object{
		"name": "coder review", "status": "completed", "conclusion": conclusion,
		"output": object{"title": title, "summary": cmp.Or(summary, title), "annotations": annotations},
	}
}
