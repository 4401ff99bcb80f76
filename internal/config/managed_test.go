package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// managed writes managed files into a new folder, by name.
func managed(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "coder")
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		for at := path; at != filepath.Dir(dir); at = filepath.Dir(at) { // whatever the umask is
			if err := os.Chmod(at, 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	return dir
}

// One row for each kind of order: what a user has, what is managed, and what holds.
func TestManagedSettingsOnlyTighten(t *testing.T) {
	for _, tt := range []struct{ key, user, limit, want string }{
		{"safety.sandbox", `"off"`, `"require"`, `"require"`},
		{"safety.sandbox", `"require"`, `"auto"`, `"require"`},
		{"safety.sandbox", `"off"`, `"off"`, `"off"`},
		{"approval.auto_approve_ask", `true`, `false`, `false`},
		{"approval.auto_approve_ask", `false`, `true`, `false`},
		{"runtime.max_steps", `500`, `100`, `100`},
		{"runtime.max_steps", `50`, `100`, `50`},
		{"runtime.budget.usd", `0`, `2.5`, `2.5`},
		{"runtime.budget.usd", `1.5`, `2.5`, `1.5`},
		{"runtime.budget.tokens", `900`, `500`, `500`},
		{"permission.frozen", `["a"]`, `["b"]`, `["a","b"]`},
		{"permission.command_allowlist", `["make","curl"]`, `["make","go"]`, `["make"]`},
		{"safety.network", `true`, `["*.example.org"]`, `["*.example.org"]`},
		{"safety.network", `["a.example.org","b.example.com"]`, `["*.example.org"]`, `["a.example.org"]`},
		{"safety.network", `false`, `["*.example.org"]`, `false`},
		{"safety.network", `["a.example.org"]`, `false`, `false`},
		{"fetch.allow_private", `true`, `false`, `false`},
		{"storage.fsync", `"never"`, `"decisions"`, `"decisions"`},
	} {
		block, name, _ := strings.Cut(tt.key, ".")
		text := func(value string) string {
			if first, last, deep := strings.Cut(name, "."); deep {
				return `{"` + block + `": {"` + first + `": {"` + last + `": ` + value + `}}}`
			}
			return `{"` + block + `": {"` + name + `": ` + value + `}}`
		}
		dir := managed(t, map[string]string{"managed.json": text(tt.limit)})
		_, report, err := Load(Options{Home: "/home", Managed: dir, ReadFile: func(path string) ([]byte, error) {
			if path == "/home/config.json" {
				return []byte(text(tt.user)), nil
			}
			return nil, os.ErrNotExist
		}})
		if err != nil {
			t.Errorf("%s: %v", tt.key, err)
			continue
		}
		for _, r := range report.Rows() {
			if r.Key == tt.key && (r.Value != tt.want || !strings.HasPrefix(r.DisplayOrigin(), "locked by "+dir)) {
				t.Errorf("%s: %s under %s is %s (%s), want %s", tt.key, tt.user, tt.limit, r.Value, r.DisplayOrigin(), tt.want)
			}
		}
	}
}

func TestNoLayerGetsPastManagedSettings(t *testing.T) {
	dir := managed(t, map[string]string{
		"managed.json":     `{"safety": {"sandbox": "require"}, "runtime": {"max_steps": 100}, /* all */ "managed": {"models": ["a*"]}}`,
		"managed.d/b.json": `{"runtime": {"max_steps": 50}, "managed": {"models": ["*b"]}}`,
		"managed.d/a.json": `{"runtime": {"max_steps": 70}}`,
		"managed.d/README": `not read`,
	})
	project := t.TempDir()
	if err := os.MkdirAll(filepath.Join(project, ".coder"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(project, ".coder", "config.json"), []byte(`{"runtime": {"max_steps": 900}}`), 0o644); err != nil {
		t.Fatal(err)
	}
	c, report, err := Load(Options{
		Managed: dir, Project: project, TrustProject: true,
		Getenv: func(name string) string { return map[string]string{"CODER_MAX_STEPS": "800"}[name] },
		Flags:  []Override{{Key: "safety.sandbox", Value: "off", Name: "-s"}, {Key: "runtime.max_steps", Value: 700, Name: "--max-steps"}},
	})
	if err != nil || c.Safety.Sandbox != "require" || c.Runtime.MaxSteps != 50 || len(report.Limits) != 2 {
		t.Errorf("sandbox %s, %d steps, %d limits, %v", c.Safety.Sandbox, c.Runtime.MaxSteps, len(report.Limits), err)
	}
	if len(report.Warnings) != 2 || !strings.Contains(report.Warnings[0].String(), "is locked by "+dir) {
		t.Errorf("the flags were overruled without a word: %v", report.Warnings)
	}
	for key, values := range map[string]map[string]bool{
		"runtime.max_steps": {"51": false, "50": true, "5": true}, "safety.sandbox": {"auto": false, "require": true}, "ui.theme": {"dark": true},
	} {
		for value, may := range values {
			if err := report.CheckLocked(key, value); (err == nil) != may {
				t.Errorf("%s = %s: %v", key, value, err)
			}
		}
	}
}

func TestManagedSettingsThatCannotBeUsedRefuse(t *testing.T) {
	for text, says := range map[string]string{
		`{"ui": {"theme": "dark"}}`:                      "no order",
		`{"provider": {"base_url": "http://x"}}`:         "no order",
		`{"permission": {"bash": "deny"}}`:               "managed.deny",
		`{"mcpServers": {}}`:                             "no order",
		`{"safety": {"sandbox": "always"}}`:              "expected require",
		`{"safety": {"sandbax": "require"}}`:             "did you mean",
		`{"runtime": {"budget": {"usd": 0}}}`:            "0 is no limit",
		`{"runtime": {"max_steps": "${STEPS:-9}"}}`:      "whole number",
		`{"managed": {"modes": ["yo"]}}`:                 "expected plan",
		`{"managed": {"models": null}}`:                  "null is no limit",
		`{"managed": {"model": ["a"]}}`:                  "model",
		`{"managed": {"endpoints": ["http://x.org/v"]}}`: "host pattern",
		`{"managed": {"keep_days": -1}}`:                 "below zero",
		`{"managed": []}`:                                "managed",
		`{"safety": `:                                    "not JSON",
		`[]`:                                             "expected an object",
		`{"format": 99}`:                                 "format 99",
	} {
		c, _, err := Load(Options{Managed: managed(t, map[string]string{"managed.d/x.json": text})})
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: sandbox %s, %v; want an error with %q", text, c.Safety.Sandbox, err, says)
		}
	}
}

func TestManagedFilesBelongToRootAlone(t *testing.T) {
	const text = `{"safety": {"sandbox": "require"}}`
	for name, spoil := range map[string]func(dir string) error{
		"a file that others write":           func(dir string) error { return os.Chmod(filepath.Join(dir, "managed.json"), 0o666) },
		"a folder that a group writes":       func(dir string) error { return os.Chmod(dir, 0o775) },
		"a drop-in folder that others write": func(dir string) error { return os.Chmod(filepath.Join(dir, "managed.d"), 0o757) },
		"a link into a folder that others write": func(dir string) error {
			open := filepath.Join(dir, "open")
			if err := os.Mkdir(open, 0o755); err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(open, "x.json"), []byte(text), 0o644); err != nil {
				return err
			}
			if err := os.Chmod(open, 0o777); err != nil {
				return err
			}
			return os.Symlink(filepath.Join(open, "x.json"), filepath.Join(dir, "managed.d", "x.json"))
		},
		"a link that leads nowhere":   func(dir string) error { return os.Symlink("nowhere", filepath.Join(dir, "managed.d", "x.json")) },
		"a folder in place of a file": func(dir string) error { return os.Mkdir(filepath.Join(dir, "managed.d", "x.json"), 0o755) },
	} {
		dir := managed(t, map[string]string{"managed.json": text, "managed.d/y.json": text})
		if err := spoil(dir); err != nil {
			t.Fatal(err)
		}
		if _, _, err := Load(Options{Managed: dir}); err == nil {
			t.Errorf("%s was used", name)
		}
	}
	if err := checkOwner("/", os.Geteuid()+1, "/"); err == nil {
		t.Error("an owner other than the one expected is none")
	}
	if _, _, err := Load(Options{Managed: filepath.Join(t.TempDir(), "none")}); err != nil {
		t.Errorf("without managed settings: %v", err)
	}
}

// Every setting that can be managed says its order in words.
func TestEveryOrderIsKnown(t *testing.T) {
	for _, k := range ManagedKeys() {
		if k.Order == "" || k.Doc == "" {
			t.Errorf("%s has no order in words", k.Key)
		}
	}
	rootField().walk(func(f *field) {
		if f.tightenOrder() == "stricter" && len(f.enum()) < 2 {
			t.Errorf("%s has no values in order", f.path)
		}
	})
}
