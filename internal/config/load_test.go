package config_test

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"coder/internal/config"
)

const (
	homeDir     = "/home/u/.coder"
	homeFile    = "/home/u/.coder/config.json"
	projectDir  = "/src/p"
	projectFile = "/src/p/.coder/config.json"
)

// files is a disk that holds little.
type files map[string]string

func (f files) read(name string) ([]byte, error) {
	if text, ok := f[filepath.ToSlash(name)]; ok {
		return []byte(text), nil
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

// env is an environment that holds little.
type env map[string]string

func (e env) get(name string) string { return e[name] }

func load(f files, e env, change ...func(*config.Options)) (config.Config, config.Report, error) {
	o := config.Options{Home: homeDir, Project: projectDir, TrustProject: true, Getenv: e.get, ReadFile: f.read}
	for _, c := range change {
		c(&o)
	}
	return config.Load(o)
}

func mustLoad(t *testing.T, f files, e env, change ...func(*config.Options)) (config.Config, config.Report) {
	t.Helper()
	c, r, err := load(f, e, change...)
	if err != nil {
		t.Fatal(err)
	}
	return c, r
}

func untrusted(o *config.Options) { o.TrustProject = false }

func flags(os ...config.Override) func(*config.Options) {
	return func(o *config.Options) { o.Flags = os }
}

func TestNothingGivenIsTheDefault(t *testing.T) {
	c, r, err := config.Load(config.Options{})
	if err != nil || !reflect.DeepEqual(c, config.Default()) {
		t.Fatalf("got %+v, %v", c, err)
	}
	for _, row := range r.Rows() {
		if row.Origin.String() != "default" {
			t.Errorf("%s comes from %s", row.Key, row.Origin)
		}
	}
	c, _ = mustLoad(t, files{homeFile: " \n", projectFile: "\ufeff{ /* nothing */ }"}, nil)
	if !reflect.DeepEqual(c, config.Default()) {
		t.Fatalf("empty files give %+v", c)
	}
}

func TestDefaultsThatUsersRelyOn(t *testing.T) {
	want := `{
	  "provider": {"base_url": "", "model": "", "models": [], "api_key": "", "timeout_ms": 0,
	               "idle_timeout_ms": 120000, "max_retries": 4, "headers": {}, "tool_mode": "auto"},
	  "runtime": {"max_steps": 128, "context_token_limit": 0},
	  "safety": {"command_timeout_ms": 120000, "output_limit_bytes": 1048576, "sandbox": "auto"},
	  "compaction": {"auto": true, "prune": true, "threshold": 0.8, "recent_messages": 12},
	  "workflow": {"require_todo_for_complex": true, "auto_verify_after_edit": true, "max_verify_attempts": 2,
	               "verify_commands": [], "plan_exit_mode": "default"},
	  "approval": {"interactive": true, "auto_approve_ask": false, "bang": "policy", "dangerous_noninteractive": "deny",
	               "on_reject": "continue"},
	  "permission": {"default": "ask", "read": "allow", "write": "ask", "bash": {"*": "ask"}, "command_allowlist": [],
	                 "allowlist_match": "name"},
	  "agents": {"default": "build"},
	  "skills": {"paths": []},
	  "storage": {"fsync": "decisions"},
	  "ui": {"lang": "", "color": "auto", "theme": "auto", "plain": false, "notify": "bell"}
	}`
	c, r := mustLoad(t, files{homeFile: want}, nil)
	if !reflect.DeepEqual(c, config.Default()) {
		t.Errorf("the documented defaults give %+v", c)
	}
	if got := r.Origin("runtime.max_steps").String(); got != homeFile+":4" {
		t.Errorf("max_steps comes from %s", got)
	}
}

func TestStrongerLayersWinKeyByKey(t *testing.T) {
	layers := files{
		homeFile:    `{"provider": {"model": "home", "headers": {"A": "home", "B": "home"}, "models": ["x", "y"]}, "runtime": {"max_steps": 1}}`,
		projectFile: "{\n\"provider\": {\"model\": \"project\",\n\"headers\": {\"B\": \"project\"}, \"models\": [\"z\"]}}",
		"/x.json":   `{"provider": {"model": "file", "headers": {"C": "file"}}, "ui": {"color": "never"}}`,
	}
	named := func(o *config.Options) { o.ExtraFile = "/x.json" }
	model := func(e env, change ...func(*config.Options)) string {
		t.Helper()
		c, r := mustLoad(t, layers, e, change...)
		return c.Provider.Model + " from " + r.Origin("provider.model").String()
	}
	if got := model(nil); got != "project from "+projectFile+":2" {
		t.Error(got)
	}
	if got := model(nil, named); got != "file from /x.json:1" {
		t.Error(got)
	}
	if got := model(env{"CODER_CONFIG": "/x.json"}); got != "file from /x.json:1" {
		t.Error(got)
	}
	if got := model(env{"CODER_MODEL": "env", "AGENT_MODEL": "old"}, named); got != "env from env CODER_MODEL" {
		t.Error(got)
	}
	if got := model(env{"CODER_MODEL": "", "AGENT_MODEL": "old"}, named); got != "old from env AGENT_MODEL" {
		t.Error(got)
	}
	if got := model(env{"CODER_MODEL": "env"}, named, flags(config.Override{Key: "provider.model", Value: "flag", Name: "--model"})); got != "flag from --model" {
		t.Error(got)
	}
	c, _ := mustLoad(t, layers, nil, named)
	if want := map[string]string{"A": "home", "B": "project", "C": "file"}; !reflect.DeepEqual(c.Provider.Headers, want) {
		t.Errorf("headers %v", c.Provider.Headers)
	}
	if want := []string{"z"}; !reflect.DeepEqual(c.Provider.Models, want) {
		t.Errorf("models %v", c.Provider.Models)
	}
	if c.Runtime.MaxSteps != 1 || c.UI.Color != "never" {
		t.Errorf("steps %d, colour %s", c.Runtime.MaxSteps, c.UI.Color)
	}
}

func TestPermissionsMerge(t *testing.T) {
	tests := []struct {
		home, project string
		want          map[string]config.Rules
	}{
		{`{"bash": {"git *": "allow"}}`, `{"bash": {"rm *": "deny"}}`,
			map[string]config.Rules{"read": {"*": "allow"}, "write": {"*": "ask"}, "bash": {"*": "ask", "git *": "allow", "rm *": "deny"}}},
		{`{"bash": {"git *": "allow"}}`, `{"bash": "deny"}`,
			map[string]config.Rules{"read": {"*": "allow"}, "write": {"*": "ask"}, "bash": {"*": "deny"}}},
		{`{"bash": "allow", "mcp__x__*": "deny"}`, `{"bash": {"x": "ask"}, "edit": {"src/**": "allow"}}`,
			map[string]config.Rules{"read": {"*": "allow"}, "write": {"*": "ask"}, "bash": {"*": "allow", "x": "ask"},
				"mcp__x__*": {"*": "deny"}, "edit": {"src/**": "allow"}}},
	}
	for _, tt := range tests {
		c, _ := mustLoad(t, files{homeFile: `{"permission": ` + tt.home + `}`, projectFile: `{"permission": ` + tt.project + `}`}, nil)
		if !reflect.DeepEqual(c.Permission.Tools, tt.want) {
			t.Errorf("%s under %s: %v", tt.home, tt.project, c.Permission.Tools)
		}
	}
}

func TestForeignObjectsMerge(t *testing.T) {
	c, _ := mustLoad(t, files{
		homeFile:    `{"lsp": {"servers": {"fs": {"command": "a", "env": {"K": "${V}"}, "n": 12345678901234567890}, "web": {"url": "u"}}}}`,
		projectFile: `{"lsp": {"servers": {"fs": {"args": ["x", /* c */ "y",], "env": {"L": "$${V}"}}}}}`,
	}, env{"V": "v"})
	if got, want := string(c.LSP.Servers["fs"]), `{"args":["x","y"],"command":"a","env":{"K":"v","L":"${V}"},"n":12345678901234567890}`; got != want {
		t.Errorf("fs is %s, want %s", got, want)
	}
	if got, want := string(c.LSP.Servers["web"]), `{"url":"u"}`; got != want {
		t.Errorf("web is %s", got)
	}
}

func TestServersOfAPersonAreNotMixedWithThoseOfAProject(t *testing.T) {
	all := files{
		homeFile:    `{"mcpServers": {"fs": {"command": "a"}, "gone": {"command": "${NO_SUCH}"}}}`,
		projectFile: `{"mcpServers": {"fs": {"args": ["x"]}, "gone": {"command": "b"}, "named": {"command": "b"}, "own": {"command": "b", "env": {"K": "${V}"}}}}`,
		"/named":    `{"mcpServers": {"fs": {"n": 1}, "named": {"args": ["c"]}}}`,
	}
	c, r := mustLoad(t, all, env{"V": "v", "CODER_CONFIG": "/named"})
	got := make(map[string]string)
	for name, raw := range c.MCPServers {
		got[name] = string(raw)
	}
	want := map[string]string{"fs": `{"command":"a","n":1}`, "named": `{"args":["c"]}`, "own": `{"command":"b","env":{"K":"v"}}`}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the servers are %v, want %v", got, want)
	}
	var left []string
	for _, l := range r.SkippedServers {
		left = append(left, fmt.Sprint(l.Name, l.Project))
	}
	if want := []string{"gonefalse", "fstrue", "gonetrue"}; !slices.Equal(left, want) {
		t.Errorf("left out are %v, want %v", left, want)
	}
}

func TestListsOfHooksAreJoinedAndItIsKnownWhose(t *testing.T) {
	c, r := mustLoad(t, files{
		homeFile:    `{"hooks": {"PreToolUse": [{"command": "mine"}], "Stop": []}}`,
		projectFile: `{"hooks": {"PreToolUse": [{"command": "echo ${NOT_SET}"}]}}`,
	}, nil)
	if got, want := string(c.Hooks["PreToolUse"]), `[{"command":"mine"},{"command":"echo ${NOT_SET}"}]`; got != want {
		t.Errorf("hooks are %s, want %s", got, want)
	}
	if p := r.Parts["hooks.PreToolUse"]; len(p) != 2 || p[0].Project || !p[1].Project || string(p[1].Value) != `[{"command":"echo ${NOT_SET}"}]` {
		t.Errorf("parts are %+v", p)
	}
}

func TestMistakesAreNamed(t *testing.T) {
	tests := []struct{ text, want string }{
		{"{\n  \"provider\": {\n    \"modle\": \"x\"}}", `:3:5: unknown key "provider.modle"; did you mean "provider.model"?`},
		{`{"privider": {}}`, `:1:2: unknown key "privider"; did you mean "provider"?`},
		{`{"model": "x"}`, `:1:2: unknown key "model"; did you mean "provider.model"?`},
		{`{"quite_another_thing": 1}`, `:1:2: unknown key "quite_another_thing"`},
		{`{"runtime": {"a.b": 1}}`, `:1:14: unknown key "runtime.\"a.b\""`},
		{`{"runtime": {"max_steps": "many"}}`, `:1:27: runtime.max_steps: expected a whole number from 1 to 1000000, found "many"`},
		{`{"runtime": {"max_steps": 0}}`, `:1:27: runtime.max_steps: expected a whole number from 1 to 1000000, found 0`},
		{`{"runtime": {"max_steps": 1.5}}`, `found 1.5`},
		{`{"runtime": {"max_steps": 1e999}}`, `found 1e999`},
		{`{"runtime": {"max_steps": null}}`, `found null`},
		{`{"runtime": 5}`, `:1:13: runtime: expected an object, found 5`},
		{`[]`, `:1:1: expected an object, found a list`},
		{`{"compaction": {"threshold": 1.5}}`, `compaction.threshold: expected a number from 0 to 1, found 1.5`},
		{`{"compaction": {"threshold": -1}}`, `compaction.threshold: expected a number from 0 to 1, found -1`},
		{`{"compaction": {"auto": "yes"}}`, `compaction.auto: expected true or false, found "yes"`},
		{`{"safety": {"sandbox": "of"}}`, `safety.sandbox: expected require, auto or off, found "of"; did you mean "off"?`},
		{`{"storage": {"fsync": "sometimes"}}`, `storage.fsync: expected always, decisions or never, found "sometimes"`},
		{`{"provider": {"tool_mode": "json"}}`, `provider.tool_mode: expected native, auto or xml, found "json"`},
		{`{"provider": {"kind": "openia"}}`, `did you mean "openai"?`},
		{`{"provider": {"models": "x"}}`, `provider.models: expected a list of strings, found "x"`},
		{`{"provider": {"models": ["x", 1]}}`, `provider.models: expected a list of strings, found 1 in it`},
		{`{"provider": {"headers": {"A": 1}}}`, `:1:32: provider.headers.A: expected a string, found 1`},
		{`{"provider": {"base_url": "localhost:8080"}}`, `provider.base_url: expected an address such as https://host/v1, found "localhost:8080"`},
		{`{"permission": {"bash": "maybe"}}`, `:1:25: permission.bash: expected deny, ask or allow, found "maybe"`},
		{`{"permission": {"bash": {"git *": true}}}`, `permission.bash."git *": expected deny, ask or allow, found true`},
		{`{"permission": {"comand_allowlist": []}}`, `found a list; did you mean "permission.command_allowlist"?`},
		{`{"mcpServers": []}`, `mcpServers: expected an object, found a list`},
		{"{\"ui\": {},\n \"ui\": {}}", `:2:2: key "ui" appears twice`},
		{"{\n\"format\": 3, \"written_by\": \"0.9.0\", \"brand_new\": 1}", `:2:11: these settings are in format 3, for coder 0.9.0; this version reads format 1`},
		{`{"format": 2}`, `:1:12: these settings are in format 2, for a newer version of coder; this version reads format 1`},
		{`{"format": "new"}`, `:1:12: format: expected a whole number from 1, found "new"`},
		{"{\n\"ui\": }", `:2:7: not JSON: invalid character '}' at start of value`},
		{`{"ui": {}`, `:1:10: not JSON: parsing object after value: unexpected EOF`},
		{`{"provider": {"api_key": "${NO_SUCH}"}}`, `:1:26: provider.api_key: variable NO_SUCH is not set; set it, or write ${NO_SUCH:-default}`},
		{strings.Repeat("[", 100_000), `:1:65: brackets are nested more than 64 levels deep`},
		{`{"agents": {"default": "` + strings.Repeat("x", 1<<20) + `"}}`, `:1:1: the file is larger than 1048576 bytes`},
	}
	for _, tt := range tests {
		c, _, err := load(files{homeFile: tt.text}, nil)
		if err == nil || !strings.HasPrefix(err.Error(), homeFile+":") || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%.60s\n got %v\nwant %s", tt.text, err, tt.want)
		}
		if !reflect.DeepEqual(c, config.Default()) {
			t.Errorf("%.60s gives other settings than the default", tt.text)
		}
		var e *config.Error
		if !errors.As(err, &e) || e.Line == 0 {
			t.Errorf("%.60s: %T", tt.text, err)
		}
	}
}

func TestSeveralMistakesAreAllNamed(t *testing.T) {
	_, _, err := load(files{homeFile: "{\"a\": 1,\n\"runtime\": {\"max_steps\": 0}}", projectFile: `{"zzz": 1}`}, env{"CODER_MAX_STEPS": "-3"},
		flags(config.Override{Key: "ui.colour", Value: "never", Name: "--colour"}))
	for _, want := range []string{
		homeFile + `:1:2: unknown key "a"`,
		homeFile + ":2:26: runtime.max_steps:",
		projectFile + `:1:2: unknown key "zzz"`,
		"env CODER_MAX_STEPS: runtime.max_steps: expected a whole number from 1 to 1000000, found -3",
		`--colour: unknown key "ui.colour"; did you mean "ui.color"?`,
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not name %s", err, want)
		}
	}
	many := "{"
	for i := range 1000 {
		many += fmt.Sprintf("\"zz%d\": 1,", i)
	}
	if _, _, err := load(files{homeFile: many + "}"}, nil); err == nil || strings.Count(err.Error(), "\n") > 30 {
		t.Errorf("a thousand mistakes fill %d bytes", len(err.Error()))
	}
}

func TestUnreadableFiles(t *testing.T) {
	denied := func(o *config.Options) {
		o.ReadFile = func(name string) ([]byte, error) {
			return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
		}
	}
	if _, _, err := load(nil, nil, denied); !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), homeFile) {
		t.Errorf("got %v", err)
	}
	missing := func(o *config.Options) { o.ExtraFile = "/no/such.json" }
	if _, _, err := load(nil, nil, missing); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a named file that is missing gives %v", err)
	}
}

func TestCommentsCommasAndBOM(t *testing.T) {
	c, r := mustLoad(t, files{homeFile: "\ufeff// mine\r\n{\r\n  /* the \"model\": */ \"provider\": {\"model\": \"m\", // {[\r\n  },\r\n  \"$schema\": \"x\", \"format\": 1,\r\n}\r\n"}, nil)
	if c.Provider.Model != "m" || r.Origin("provider.model").Line != 3 {
		t.Errorf("model %q from %s", c.Provider.Model, r.Origin("provider.model"))
	}
}

func TestVariablesExpand(t *testing.T) {
	e := env{"KEY": "sk-1", "HOST": "h.example", "EMPTY": ""}
	c, r := mustLoad(t, files{
		homeFile: `{"provider": {"api_key": "${KEY}", "base_url": "http://${HOST}:${PORT:-8080}/v1", "headers": {"X": "a${EMPTY:-}b"},
			"models": ["${HOST}", "$HOST", "${}", "${1}", "$${HOST}", "${HOST"]}, "workflow": {"verify_commands": ["echo ${X}"]}}`,
	}, e)
	p := c.Provider
	if p.APIKey != "sk-1" || p.BaseURL != "http://h.example:8080/v1" || p.Headers["X"] != "ab" {
		t.Errorf("got %+v", p)
	}
	if want := []string{"h.example", "$HOST", "${}", "${1}", "${HOST}", "${HOST"}; !reflect.DeepEqual(p.Models, want) {
		t.Errorf("models %q", p.Models)
	}
	if c.Workflow.VerifyCommands[0] != "echo ${X}" {
		t.Errorf("the shell's variable is gone: %q", c.Workflow.VerifyCommands)
	}
	if vars := strings.Join(r.SecretVariables(), " "); !strings.Contains(vars, "KEY ") || strings.Contains(vars, "HOST") {
		t.Errorf("variables that hold keys: %s", vars)
	}
	c, _ = mustLoad(t, nil, env{"CODER_MODEL": "${KEY}", "KEY": "sk-1"})
	if c.Provider.Model != "${KEY}" {
		t.Errorf("a variable's value was expanded again: %s", c.Provider.Model)
	}
}

func TestFlags(t *testing.T) {
	c, r := mustLoad(t, nil, nil, flags(
		config.Override{Key: "runtime.max_steps", Value: "7", Name: "--max-steps"},
		config.Override{Key: "approval.auto_approve_ask", Value: true, Name: "--auto-approve"},
		config.Override{Key: "compaction.threshold", Value: 0.5, Name: "--t"},
		config.Override{Key: "provider.models", Value: "a, b,,c", Name: "--models"},
		config.Override{Key: "skills.paths", Value: []string{"x,y"}, Name: "--skills"},
		config.Override{Key: `permission.bash."git *"`, Value: "allow", Name: "--allow"},
		config.Override{Key: "permission.fetch", Value: "deny", Name: "--deny"},
		config.Override{Key: "provider.headers.X-Y", Value: "1", Name: "--header"},
		config.Override{Key: "mcpServers.fs", Value: `{"command": "x",}`, Name: "--mcp"},
	))
	if c.Runtime.MaxSteps != 7 || !c.Approval.AutoApproveAsk || c.Compaction.Threshold != 0.5 {
		t.Errorf("got %+v", c)
	}
	if !reflect.DeepEqual(c.Provider.Models, []string{"a", "b", "c"}) || !reflect.DeepEqual(c.Skills.Paths, []string{"x,y"}) {
		t.Errorf("lists %q %q", c.Provider.Models, c.Skills.Paths)
	}
	if c.Permission.Tools["bash"]["git *"] != "allow" || c.Permission.Tools["bash"]["*"] != "ask" || c.Permission.Tools["fetch"]["*"] != "deny" {
		t.Errorf("rules %v", c.Permission.Tools)
	}
	if c.Provider.Headers["X-Y"] != "1" || string(c.MCPServers["fs"]) != `{"command":"x"}` {
		t.Errorf("headers %v, servers %s", c.Provider.Headers, c.MCPServers)
	}
	if got := r.Origin(`permission.bash."git *"`).String(); got != "--allow" {
		t.Errorf("the rule comes from %s", got)
	}
	for _, bad := range []config.Override{
		{Key: "runtime.max_steps", Value: "seven"}, {Key: "runtime.max_steps", Value: "7; 8"}, {Key: "runtime.max_steps", Value: []int{1}},
		{Key: "runtime", Value: "7"}, {Key: "runtime.max_steps.more", Value: "7"}, {Key: "", Value: "7"}, {Key: "ui.color", Value: "pink"},
		{Key: "permission.bash.a.b", Value: "ask"}, {Key: "mcpServers", Value: strings.Repeat("[", 1000)}, {Key: "ui.color", Value: func() {}},
	} {
		bad.Name = "--bad"
		if _, _, err := load(nil, nil, flags(bad)); err == nil || !strings.HasPrefix(err.Error(), "--bad: ") {
			t.Errorf("%+v gives %v", bad, err)
		}
	}
}

func TestWorkingInTheHomeFolderHasOneFile(t *testing.T) {
	o := config.Options{Home: "/home/u/.coder", Project: "/home/u"}
	if got := o.Files(); len(got) != 1 || got[0] != homeFile {
		t.Errorf("files %v", got)
	}
	c, r := mustLoad(t, files{homeFile: `{"provider": {"base_url": "http://x"}}`}, nil, untrusted, func(o *config.Options) { o.Project = "/home/u" })
	if c.Provider.BaseURL != "http://x" || len(r.Warnings) > 0 || len(r.Files) != 1 {
		t.Errorf("%+v, %v", c.Provider, r.Warnings)
	}
}

func BenchmarkLoad(b *testing.B) {
	f := files{
		homeFile: `{
			// mine
			"provider": {"base_url": "https://api.example.org/v1", "model": "m", "api_key": "${KEY}", "models": ["a", "b", "c"]},
			"permission": {"bash": {"git status*": "allow", "go test *": "allow", "rm *": "deny"}},
			"mcpServers": {"fs": {"command": "mcp-fs", "args": ["--root", "."], "env": {"A": "b"}}},
		}`,
		projectFile: `{"runtime": {"max_steps": 50}, "permission": {"write": "deny"}, "workflow": {"verify_commands": ["go test ./..."]}}`,
	}
	o := config.Options{Home: homeDir, Project: projectDir, Getenv: env{"KEY": "sk-1"}.get, ReadFile: f.read}
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := config.Load(o); err != nil {
			b.Fatal(err)
		}
	}
}
