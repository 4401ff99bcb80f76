package mcp

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"coder/internal/core/uip"
)

// TestRealServers talks to the reference servers where they are installed.
func TestRealServers(t *testing.T) {
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write([]byte("<html><body><p>a page from next door</p></body></html>"))
	}))
	defer page.Close()
	for _, tt := range []struct {
		program     string
		args        []string
		tool, input string
		want        string
		images      int
	}{
		{"mcp-server-everything", nil, "echo", `{"message":"hello"}`, "hello", 0},
		{"mcp-server-everything", nil, "get-tiny-image", `{}`, "picture", 1},
		{"mcp-server-everything", nil, "get-structured-content", `{"location":"New York"}`, "temperature", 0},
		{"mcp-server-everything", nil, "trigger-long-running-operation", `{"duration":1,"steps":2}`, "50%", 0},
		{"mcp-server-filesystem", []string{"."}, "read_text_file", `{"path":"ROOT/note.txt"}`, "what it says", 0},
		{"mcp-server-git", nil, "git_status", `{"repo_path":"ROOT"}`, "note.txt", 0},
		{"mcp-server-fetch", []string{"--allow-private-ips"}, "fetch", `{"url":"` + page.URL + `/"}`, "a page from next door", 0},
	} {
		t.Run(tt.program+" "+tt.tool, func(t *testing.T) {
			program, err := exec.LookPath(tt.program)
			if err != nil {
				program = filepath.Join(os.Getenv("HOME"), ".local", "share", "mcp-servers", "bin", tt.program)
			}
			if _, err := os.Stat(program); err != nil {
				t.Skipf("%s is not installed; make tools installs it", tt.program)
			}
			root := t.TempDir()
			if err := os.WriteFile(filepath.Join(root, "note.txt"), []byte("what it says\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			if out, err := exec.Command("git", "init", "-q", root).CombinedOutput(); err != nil {
				t.Skipf("git: %v %s", err, out)
			}
			w := &world{}
			w.Host = New(Options{
				Servers: []Server{{Name: "real", Type: Stdio, Command: program, Args: tt.args}}, Root: root, Vision: true, Now: time.Now,
				Env: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}, Warn: func(text string) { t.Log(text) },
			})
			defer w.Close()
			res, text, err := w.up(t).call(t, t.Context(), "mcp__real__"+tt.tool, strings.ReplaceAll(tt.input, "ROOT", root))
			if err != nil || res.Failed || !strings.Contains(text, tt.want) || len(res.Images) != tt.images {
				t.Errorf("%s, %d images, %v", text, len(res.Images), err)
			}
		})
	}
}

// TestTheEverythingServer uses what the reference server has beside plain tools.
func TestTheEverythingServer(t *testing.T) {
	program, err := exec.LookPath("mcp-server-everything")
	if err != nil {
		t.Skip("mcp-server-everything is not installed; make tools installs it")
	}
	w := &world{Host: New(Options{
		Servers: []Server{{Name: "real", Type: Stdio, Command: program}}, Root: t.TempDir(), Now: time.Now, Warn: func(text string) { t.Log(text) },
		Env: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()},
		Sample: func(_ context.Context, s SampleRequest) (SampleResult, error) {
			return SampleResult{Text: "sampled words", Model: "m"}, nil
		},
	})}
	defer w.Close()
	p, ok := w.up(t).FindPrompt(t.Context(), "mcp__real__args-prompt")
	if !ok {
		t.Fatalf("prompts: %v", w.Prompts())
	}
	if text, err := p.Render(t.Context(), "Paris"); err != nil || !strings.Contains(text, "Paris") {
		t.Errorf("%s: %q, %v", p.Usage(), text, err)
	}
	if len(w.Resources()) == 0 {
		t.Fatal("there are no resources")
	}
	raw, _ := json.Marshal(ResourceArgs{"real", w.Resources()[0].URI})
	call, err := w.ResourceReader().Prepare(t.Context(), raw)
	if err != nil {
		t.Fatal(err)
	}
	if res, err := call.Run(t.Context(), io.Discard); err != nil || res.Value.(resourceResult).Content == "" {
		t.Errorf("%+v, %v", res.Value, err)
	}
	who := uip.InteractorFunc(func(_ context.Context, q uip.Request) (uip.Response, error) {
		if q.Purpose == uip.PurposeConfirmRiskyAction {
			return uip.Response{ID: q.ID, Author: "user", Option: uip.OptionApprove}, nil
		}
		return uip.Response{ID: q.ID, Author: "user", Dismissed: true}, nil
	})
	for tool, want := range map[string]string{"trigger-sampling-request": "sampled words", "trigger-elicitation-request": "cancel"} {
		args := "{}"
		if tool == "trigger-sampling-request" {
			args = `{"prompt":"speak"}`
		}
		if _, text, err := w.call(t, uip.WithInteractor(t.Context(), who), "mcp__real__"+tool, args); err != nil || !strings.Contains(text, want) {
			t.Errorf("%s: %s, %v", tool, text, err)
		}
	}
}
