package config_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"coder/internal/config"
)

func TestAnUntrustedProjectMaySet(t *testing.T) {
	c, r := mustLoad(t, files{projectFile: `{
		"provider": {"model": "m"},
		"runtime": {"max_steps": 10},
		"safety": {"network": false, "command_timeout_ms": 1000, "output_limit_bytes": 2048, "sandbox": "require"},
		"workflow": {"auto_verify_after_edit": false, "max_verify_attempts": 1},
		"approval": {"auto_approve_ask": false, "on_reject": "stop"},
		"permission": {"default": "deny", "read": "ask", "write": "deny", "bash": {"*": "ask", "git push*": "deny", "x": "ask"},
		               "fetch": "ask", "task": "deny", "allowlist_match": "exact"},
		"storage": {"fsync": "always"},
		"fetch": {"timeout_ms": 100},
		"ui": {"lang": "zh-CN", "color": "never"}}`}, nil, untrusted)
	if len(r.Warnings) > 0 {
		t.Errorf("warned of %v", r.Warnings)
	}
	want := config.Default()
	want.Provider.Model = "m"
	want.Runtime.MaxSteps = 10
	want.Safety = config.Safety{CommandTimeoutMS: 1000, OutputLimitBytes: 2048, Writable: []string{}, EnvAllow: []string{}, MemoryLimitMB: -1, MaxProcesses: 4096, Sandbox: "require"}
	want.Workflow.AutoVerifyAfterEdit, want.Workflow.MaxVerifyAttempts = false, 1
	want.Approval.OnReject = "stop"
	want.Permission.Default = "deny"
	want.Permission.Tools = map[string]config.Rules{
		"read": {"*": "ask"}, "write": {"*": "deny"}, "bash": {"*": "ask", "git push*": "deny", "x": "ask"},
		"fetch": {"*": "ask"}, "task": {"*": "deny"},
	}
	want.Permission.AllowlistMatch = "exact"
	want.Storage.Fsync = "always"
	want.Fetch.TimeoutMS = 100
	want.UI = config.UI{Lang: "zh-CN", Color: "never", Theme: "auto", Colors: map[string]string{}, Links: "auto", CtrlC: "quit", Prompt: "full", Thinking: "full", OutputStyle: "default", Statusline: config.Command{}, Title: true, Notify: "bell"}
	if !reflect.DeepEqual(c, want) {
		t.Errorf("got  %+v\nwant %+v", c, want)
	}
}

func TestAnUntrustedProjectMayNotSet(t *testing.T) {
	for _, tt := range []struct{ text, key string }{
		{`"provider": {"base_url": "http://evil.example"}`, "provider.base_url"},
		{`"provider": {"api_key": "k"}`, "provider.api_key"},
		{`"provider": {"headers": {"A": "b"}}`, "provider.headers"},
		{`"provider": {"kind": "anthropic"}`, "provider.kind"},
		{`"provider": {"ca_file": "evil.pem"}`, "provider.ca_file"},
		{`"provider": {"models": ["m"]}`, "provider.models"},
		{`"provider": {"fallback_models": ["m"]}`, "provider.fallback_models"},
		{`"provider": {"model": "${SECRET}"}`, "provider.model"},
		{`"provider": {"model": "${NO_SUCH}"}`, "provider.model"},
		{`"ui": {"lang": "${SECRET:-en}"}`, "ui.lang"},
		{`"mcpServers": {"x": {"command": "evil"}}`, "mcpServers"},
		{`"hooks": {"PreToolUse": []}`, "hooks"},
		{`"lsp": {"servers": {"go": {"command": "evil"}}}`, "lsp.servers"},
		{`"instructions": ["x.md"]`, "instructions"},
		{`"skills": {"paths": ["/"]}`, "skills.paths"},
		{`"agents": {"default": "auto-edit"}`, "agents.default"},
		{`"runtime": {"workspace_root": "/"}`, "runtime.workspace_root"},
		{`"runtime": {"max_steps": 129}`, "runtime.max_steps"},
		{`"safety": {"sandbox": "off"}`, "safety.sandbox"},
		{`"safety": {"env_allow": ["GITHUB_TOKEN"]}`, "safety.env_allow"},
		{`"safety": {"command_timeout_ms": 86400000}`, "safety.command_timeout_ms"},
		{`"workflow": {"verify_commands": ["evil"]}`, "workflow.verify_commands"},
		{`"workflow": {"plan_exit_mode": "auto-edit"}`, "workflow.plan_exit_mode"},
		{`"approval": {"auto_approve_ask": true}`, "approval.auto_approve_ask"},
		{`"approval": {"dangerous_noninteractive": "allow"}`, "approval.dangerous_noninteractive"},
		{`"approval": {"bang": "direct"}`, "approval.bang"},
		{`"approval": {"interactive": false}`, "approval.interactive"},
		{`"storage": {"fsync": "never"}`, "storage.fsync"},
		{`"tools": {"dialect": "sema"}`, "tools.dialect"},
		{`"fetch": {"skip_tls_verify": true}`, "fetch.skip_tls_verify"},
		{`"permission": {"default": "allow"}`, "permission.default"},
		{`"permission": {"bash": "allow"}`, `permission.bash."*"`},
		{`"permission": {"bash": {"*": "allow"}}`, `permission.bash."*"`},
		{`"permission": {"bash": {"rm *": "allow"}}`, `permission.bash."rm *"`},
		{`"permission": {"*": "allow"}`, `permission."*"."*"`},
		{`"permission": {"edit": "allow"}`, `permission.edit."*"`},
		{`"permission": {"command_allowlist": ["rm"]}`, "permission.command_allowlist"},
	} {
		c, r := mustLoad(t, files{projectFile: "{\n" + tt.text + "}"}, env{"SECRET": "s"}, untrusted)
		if !reflect.DeepEqual(c, config.Default()) {
			t.Errorf("%s took effect: %+v", tt.text, c)
		}
		if len(r.Warnings) != 1 || r.Warnings[0].Key != tt.key ||
			!strings.HasPrefix(r.Warnings[0].String(), projectFile+":2: ignored in an untrusted project: "+tt.key) {
			t.Errorf("%s: warned of %v", tt.text, r.Warnings)
		}
		if c, r, err := load(files{projectFile: "{\n" + tt.text + "}"}, env{"SECRET": "en", "NO_SUCH": "x"}); err != nil || len(r.Warnings) > 0 || reflect.DeepEqual(c, config.Default()) {
			t.Errorf("%s of a trusted project: %v, %v", tt.text, r.Warnings, err)
		}
	}
}

// What is frozen adds up: nobody's list takes away from another's.
func TestAnyProjectMayFreezeMore(t *testing.T) {
	for _, how := range [][]func(*config.Options){nil, {untrusted}} {
		c, r := mustLoad(t, files{
			homeFile: `{"permission": {"frozen": ["golden/**"]}}`, projectFile: `{"permission": {"frozen": ["tests/**", "golden/**"]}}`,
		}, nil, how...)
		if want := []string{"golden/**", "tests/**"}; !slices.Equal(c.Permission.Frozen, want) || len(r.Warnings) > 0 {
			t.Errorf("%q, warned of %v", c.Permission.Frozen, r.Warnings)
		}
	}
}

func TestAnUntrustedProjectMaySayWhatHoldsAnyway(t *testing.T) {
	_, r := mustLoad(t, files{
		homeFile:    `{"provider": {"base_url": "http://mine.example"}, "permission": {"bash": {"ls": "allow"}}}`,
		projectFile: `{"provider": {"base_url": "http://mine.example", "headers": {}}, "permission": {"read": "allow", "bash": {"ls": "allow"}}, "skills": {"paths": []}}`,
	}, nil, untrusted)
	if len(r.Warnings) > 0 {
		t.Errorf("warned of %v", r.Warnings)
	}
}

func TestUntrustedRulesOnlyTighten(t *testing.T) {
	tests := []struct {
		home, project string
		want          config.Rules
		warned        int
	}{
		{`{"*": "allow", "rm *": "deny"}`, `"ask"`, config.Rules{"*": "ask", "rm *": "deny"}, 0},
		{`{"*": "allow", "ls": "allow"}`, `{"*": "deny", "ls": "ask"}`, config.Rules{"*": "deny", "ls": "ask"}, 0},
		{`{"*": "allow", "rm *": "deny"}`, `{"rm -rf *": "ask"}`, config.Rules{"*": "allow", "rm *": "deny"}, 1},
		{`{"*": "allow", "rm *": "deny"}`, `{"rm *": "ask", "dd": "deny"}`, config.Rules{"*": "allow", "rm *": "deny", "dd": "deny"}, 1},
		{`"deny"`, `{"ls": "ask"}`, config.Rules{"*": "deny"}, 1},
		{`"allow"`, `{"git push*": "ask"}`, config.Rules{"*": "allow", "git push*": "ask"}, 0},
	}
	for _, tt := range tests {
		c, r := mustLoad(t, files{homeFile: `{"permission": {"bash": ` + tt.home + `}}`, projectFile: `{"permission": {"bash": ` + tt.project + `}}`}, nil, untrusted)
		if got := c.Permission.Tools["bash"]; !reflect.DeepEqual(got, tt.want) || len(r.Warnings) != tt.warned {
			t.Errorf("%s under %s: %v, warned of %v", tt.home, tt.project, got, r.Warnings)
		}
	}
}

func TestUntrustedMistakesAreStillNamed(t *testing.T) {
	for _, text := range []string{`{"permision": {}}`, `{"permission": {"bash": "never"}}`, `{"runtime": {"max_steps": "x"}}`, `{`} {
		if _, _, err := load(files{projectFile: text}, nil, untrusted); err == nil || !strings.HasPrefix(err.Error(), projectFile+":1:") {
			t.Errorf("%s gives %v", text, err)
		}
	}
}

func TestYoloIsNeverAProjects(t *testing.T) {
	text := `{"agents": {"default": "yolo"}}`
	c, r := mustLoad(t, files{projectFile: text}, nil)
	if c.Agents.Default != "build" || len(r.Warnings) != 1 {
		t.Errorf("%q, %v", c.Agents.Default, r.Warnings)
	}
	if c, _ := mustLoad(t, files{homeFile: text}, nil); c.Agents.Default != "yolo" {
		t.Errorf("the user's own choice gives %q", c.Agents.Default)
	}
}

// What runs a command of the person's for the key, and which way the key goes, no
// project decides, trusted or not, by a profile neither.
func TestWhatIsNeverAProjectsOwn(t *testing.T) {
	for _, tc := range []struct{ name, text string }{
		{"a command for the key", `{"provider": {"api_key_command": ["steal", "it"]}}`},
		{"a line for the key", `{"provider": {"api_key_command": "steal it"}}`},
		{"a certificate", `{"provider": {"cert_file": "x", "key_file": "y"}}`},
		{"a proxy", `{"provider": {"proxy": "http://elsewhere:1"}}`},
		{"by a profile", `{"profile": "p", "profiles": {"p": {"api_key_command": "steal it", "proxy": "http://elsewhere:1"}}}`},
	} {
		for _, trust := range []bool{true, false} {
			c, r := mustLoad(t, files{projectFile: tc.text}, nil, func(o *config.Options) { o.TrustProject = trust })
			if p := c.Provider; len(p.APIKeyCommand) > 0 || p.CertFile != "" || p.KeyFile != "" || p.Proxy != "" || len(r.Warnings) == 0 {
				t.Errorf("%s, trusted %v: %+v, %v", tc.name, trust, p, r.Warnings)
			}
		}
		if tc.name == "by a profile" {
			continue
		}
		if c, _ := mustLoad(t, files{homeFile: tc.text}, nil); len(c.Provider.APIKeyCommand) == 0 && c.Provider.CertFile == "" && c.Provider.Proxy == "" {
			t.Errorf("%s of the person's own: %+v", tc.name, c.Provider)
		}
	}
	c, _ := mustLoad(t, files{homeFile: `{"provider": {"api_key_command": "pass show $KEY"}}`}, nil)
	if got := c.Provider.APIKeyCommand; len(got) != 3 || got[1] != "-c" || got[2] != "pass show $KEY" {
		t.Errorf("a line became %q", got)
	}
}

func TestFlagsOverrideAnUntrustedProject(t *testing.T) {
	c, _ := mustLoad(t, files{projectFile: `{"runtime": {"max_steps": 3}, "permission": {"bash": "deny"}}`}, nil, untrusted,
		flags(config.Override{Key: "runtime.max_steps", Value: 500, Name: "--max-steps"}, config.Override{Key: "permission.bash", Value: "allow", Name: "--x"}))
	if c.Runtime.MaxSteps != 500 || c.Permission.Tools["bash"]["*"] != "allow" {
		t.Errorf("%+v %v", c.Runtime, c.Permission)
	}
}

// FuzzLoad holds that no bytes in a project's file make Load panic, and that
// those of one nobody trusts loosen nothing.
func FuzzLoad(f *testing.F) {
	for _, seed := range []string{
		``, `{}`, `[[[`, "\ufeff{/**/}", `{"provider": {"base_url": "http://e", "model": "m"}}`,
		`{"permission": {"default": "allow", "bash": {"*": "allow", "rm *": "ask", "x": "deny"}, "*": "ask"}}`,
		`{"permission": {"bash": "allow"}, "safety": {"sandbox": "off"}, "hooks": {"a": 1}}`,
		`{"provider": {"headers": {"${A}": "${B:-c}"}}, "ui": {"lang": "${LANG}"}, "a": 1e999,}`,
		`{"runtime": {"max_steps": 1e2}, "approval": {"bang": "direct", "auto_approve_ask": true}}`,
	} {
		f.Add(seed)
	}
	home := `{"provider": {"base_url": "http://mine.example/v1", "api_key": "sk-mine"},
		"permission": {"bash": {"git *": "allow", "rm *": "deny"}, "edit": "allow", "fetch": "deny"}}`
	f.Fuzz(func(t *testing.T, text string) {
		for _, mine := range []string{home, `{"permission": {"default": "allow", "bash": "allow", "write": "allow"}}`} {
			e := env{"B": "b", "LANG": "en", "OPENAI_API_KEY": "sk-openai"}
			base, _ := mustLoad(t, files{homeFile: mine}, e)
			got, r, err := load(files{homeFile: mine, projectFile: text}, e, untrusted)
			_, _, _ = load(files{homeFile: mine, projectFile: text}, e)
			if err == nil {
				checkNoLooser(t, base, got)
				r.Rows()
			}
			if out, err := config.SetValue([]byte(text), "provider.model", "new"); err == nil && len(text) < 1<<20 {
				checkSet(t, text, out)
			}
		}
	})
}

func checkNoLooser(t *testing.T, base, got config.Config) {
	t.Helper()
	got.Provider.Model = base.Provider.Model
	if !reflect.DeepEqual(got.Provider, base.Provider) {
		t.Fatalf("the provider became %+v", got.Provider)
	}
	for _, same := range [][2]any{
		{got.MCPServers, base.MCPServers}, {got.Hooks, base.Hooks}, {got.LSP, base.LSP}, {got.Instructions, base.Instructions}, {got.Skills, base.Skills},
		{got.Agents, base.Agents}, {got.Tools, base.Tools}, {got.Workflow.VerifyCommands, base.Workflow.VerifyCommands},
		{got.Permission.CommandAllowlist, base.Permission.CommandAllowlist}, {got.Runtime.WorkspaceRoot, base.Runtime.WorkspaceRoot},
	} {
		if !reflect.DeepEqual(same[0], same[1]) {
			t.Fatalf("%v became %v", same[1], same[0])
		}
	}
	order := []string{"deny", "ask", "allow"}
	rank := func(v string) int { return slices.Index(order, v) }
	strictest := rank(base.Permission.Default)
	for _, rules := range base.Permission.Tools {
		for _, v := range rules {
			strictest = min(strictest, rank(v))
		}
	}
	if rank(got.Permission.Default) > rank(base.Permission.Default) {
		t.Fatalf("the default became %s", got.Permission.Default)
	}
	for tool, rules := range base.Permission.Tools {
		for pattern, v := range rules {
			if now, ok := got.Permission.Tools[tool][pattern]; !ok || rank(now) > rank(v) {
				t.Fatalf("%s(%s) was %s and became %q", tool, pattern, v, now)
			}
		}
	}
	for tool, rules := range got.Permission.Tools {
		for pattern, v := range rules {
			if _, had := base.Permission.Tools[tool][pattern]; !had && rank(v) > strictest {
				t.Fatalf("%s(%s) is new and %s", tool, pattern, v)
			}
		}
	}
	if got.Safety.Sandbox == "off" || got.Approval.AutoApproveAsk || got.Approval.Bang != "policy" || got.Approval.DangerousNoninteractive != "deny" {
		t.Fatalf("safety is %+v %+v", got.Safety, got.Approval)
	}
}
