package codeindex_test

import (
	"go/build"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"coder/internal/host/codeindex"
)

// The places that somebody who knows the Go distribution would name.
func TestRelevance(t *testing.T) {
	src, dir := filepath.Join(build.Default.GOROOT, "src"), t.TempDir()
	for _, pkg := range strings.Fields(`archive/zip bufio compress/gzip crypto/tls encoding/base64 encoding/json encoding/xml flag
		io/fs net/http net/url os os/exec path regexp strings strconv sync text/template time`) {
		if err := os.CopyFS(filepath.Join(dir, pkg), os.DirFS(filepath.Join(src, pkg))); err != nil {
			t.Skipf("the Go sources are not installed: %v", err)
		}
	}
	x := openAt(t, codeindex.Options{Now: time.Now, CheckEvery: time.Hour}, dir)
	for query, want := range map[string]string{
		"where do we parse the http cookie header":   "net/http/cookie.go",
		"parse command line flags":                   "flag/flag.go",
		"tls client handshake":                       "crypto/tls/handshake_client.go",
		"format a duration as a string":              "time/time.go",
		"split a path into directory and file":       "path/path.go",
		"url query escaping":                         "net/url/url.go",
		"gzip write header":                          "compress/gzip/gzip.go",
		"unmarshal an xml attribute":                 "encoding/xml/read.go",
		"ParseDuration":                              "time/format.go",
		"open a zip archive for reading":             "archive/zip/reader.go",
		"base64 encoding to string":                  "encoding/base64/base64.go",
		"kill a process when the context is done":    "os/exec/exec.go",
		"walk a directory tree":                      "path/filepath/path.go",
		"compile a regular expression":               "regexp/regexp.go",
		"read write mutex":                           "sync/rwmutex.go",
		"how are redirects followed by the client":   "net/http/client.go",
		"json string escape of html characters":      "encoding/json/encode.go",
		"parse template text into a tree":            "text/template/parse/parse.go",
		"convert an integer to a string in any base": "strconv/itoa.go",
		"解析时间格式":                                     "time/format.go",
		"read environment variables":                 "os/env.go",
		"retry http request":                         "net/http/transport.go",
		"find the best route for a request pattern":  "net/http/routing_tree.go",
		"dial with a timeout":                        "net/http/transport.go",
	} {
		var got []string
		for _, h := range search(t, x, codeindex.Query{Text: query, Limit: 10}).Hits {
			if !slices.Contains(got, h.Path) {
				got = append(got, h.Path)
			}
		}
		if i := slices.Index(got, want); i < 0 || i > 2 {
			t.Errorf("%q: %s is at place %d of %q", query, want, i+1, got)
		}
	}
}

// The places that somebody who knows this program would name.
func TestRelevanceAtHome(t *testing.T) {
	x := openAt(t, codeindex.Options{Now: time.Now, CheckEvery: time.Hour}, "../..")
	for query, want := range map[string]string{
		"where do we parse the config":             "config/source.go",
		"retry with backoff":                       "model/provider/retry.go",
		"apply a patch to files":                   "host/patch/apply.go",
		"ignore rules gitignore":                   "host/workspace/ignore.go",
		"resume an old session":                    "agent/supervisor/supervisor.go",
		"kill the process group":                   "host/child/child.go",
		"where are tool calls executed":            "agent/toolrun/execute.go",
		"stem of a word":                           "host/codeindex/words.go",
		"rank the sections":                        "host/codeindex/rank.go",
		"walk a directory":                         "host/workspace/walk.go",
		"synonyms of a word":                       "host/codeindex/question.go",
		"the classes of a pattern for all scripts": "tool/search/dialect.go",
		"忽略规则":                                     "host/workspace/ignore.go",
	} {
		var got []string
		for _, h := range search(t, x, codeindex.Query{Text: query}).Hits {
			if !slices.Contains(got, h.Path) {
				got = append(got, h.Path)
			}
		}
		if i := slices.Index(got, want); i < 0 || i > 2 {
			t.Errorf("%q: %s is at place %d of %q", query, want, i+1, got)
		}
	}
}
