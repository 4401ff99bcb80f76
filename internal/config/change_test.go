package config_test

import (
	"strings"
	"testing"

	"coder/internal/config"
)

func TestUnsetRemovesOneKeyAndNothingElse(t *testing.T) {
	for name, tt := range map[string]struct{ before, key, after string }{
		"the only one":            {"{\n  \"ui\": {\n    \"lang\": \"en\"\n  }\n}\n", "ui.lang", "{\n  \"ui\": {\n  }\n}\n"},
		"the first":               {"{\n  // mine\n  \"ui\": {\n    \"lang\": \"en\",\n    // dark\n    \"theme\": \"dark\"\n  }\n}\n", "ui.lang", "{\n  // mine\n  \"ui\": {\n    // dark\n    \"theme\": \"dark\"\n  }\n}\n"},
		"the last":                {"{\n  \"ui\": {\n    \"lang\": \"en\", // why\n    \"theme\": \"dark\"\n  }\n}\n", "ui.theme", "{\n  \"ui\": {\n    \"lang\": \"en\" // why\n  }\n}\n"},
		"the last, with a comma":  {"{\n  \"ui\": {\n    \"lang\": \"en\",\n    \"theme\": \"dark\",\n  }\n}\n", "ui.theme", "{\n  \"ui\": {\n    \"lang\": \"en\",\n  }\n}\n"},
		"a comment on the line":   {"{\n  \"ui\": {\n    \"lang\": \"en\", // why\n    \"theme\": \"dark\"\n  }\n}\n", "ui.lang", "{\n  \"ui\": {\n    // why\n    \"theme\": \"dark\"\n  }\n}\n"},
		"on one line, first":      {`{"ui": {"color": "auto", "lang": "en"}}`, "ui.color", `{"ui": {"lang": "en"}}`},
		"on one line, last":       {`{"ui": {"color": "auto", "lang": "en"}}`, "ui.lang", `{"ui": {"color": "auto"}}`},
		"not there":               {`{"ui": {}}`, "ui.lang", `{"ui": {}}`},
		"an entry":                {`{"permission": {"bash": {"*": "ask", "git *": "allow"}}}`, `permission.bash."git *"`, `{"permission": {"bash": {"*": "ask"}}}`},
		"a comment before comma":  {"{\"ui\": {\"color\": \"auto\" /* a */, \"lang\": \"en\"}}", "ui.color", "{\"ui\": {/* a */ \"lang\": \"en\"}}"},
		"an empty file":           {"", "ui.lang", ""},
		"another kind of setting": {`{"ui": 5}`, "ui.lang", `{"ui": 5}`},
	} {
		t.Run(name, func(t *testing.T) {
			got, was, err := config.RemoveKey([]byte(tt.before), tt.key)
			if err != nil || string(got) != tt.after || was != (tt.before != tt.after) {
				t.Fatalf("got %v %v\n%q\nwant\n%q", was, err, got, tt.after)
			}
			if _, _, err := config.RemoveKey(got, tt.key); err != nil {
				t.Errorf("what is left cannot be read: %v", err)
			}
		})
	}
	if _, _, err := config.RemoveKey(nil, "ui.lagn"); err == nil || !strings.Contains(err.Error(), `did you mean "ui.lang"`) {
		t.Error(err)
	}
}

func TestSetTextTakesValuesAsPeopleWriteThem(t *testing.T) {
	for _, tt := range []struct{ key, text, want string }{
		{"ui.lang", "en", `"lang": "en"`},
		{"ui.plain", "true", `"plain": true`},
		{"runtime.max_steps", "5", `"max_steps": 5`},
		{"provider.models", "a, b", `"models": ["a","b"]`},
		{"provider.models", `["a,b"]`, `"models": ["a,b"]`},
		{"safety.network", "false", `"network": false`},
		{"safety.network", "example.org", `"network": ["example.org"]`},
		{`permission.bash."go test *"`, "allow", `"go test *": "allow"`},
		{"mcpServers.x", `{"command": "x"}`, `"x": {"command":"x"}`},
	} {
		if out, err := config.SetText(nil, tt.key, tt.text); err != nil || !strings.Contains(string(out), tt.want) {
			t.Errorf("%s %s: %s %v", tt.key, tt.text, out, err)
		}
	}
	for _, tt := range []struct{ key, text, want string }{
		{"ui.lagn", "en", `did you mean "ui.lang"`}, {"ui.plain", "maybe", "expected true or false"}, {"ui.theme", "drak", `did you mean "dark"`}, {"runtime.max_steps", "0", "expected a whole number"},
	} {
		if out, err := config.SetText(nil, tt.key, tt.text); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s %s: %s %v", tt.key, tt.text, out, err)
		}
	}
}

func TestWhatAProjectMayNotSetIsRefusedWithTheReason(t *testing.T) {
	_, r, err := config.Load(config.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		key, value string
		trusted    bool
		want       string
	}{
		{"ui.theme", "dark", false, ""},
		{"permission.write", "deny", false, ""},
		{"permission.write", "allow", false, "would loosen a rule"},
		{"permission.write", "allow", true, ""},
		{"provider.base_url", "https://x.example/v1", false, "provider.base_url"},
		{"provider.base_url", "https://x.example/v1", true, ""},
		{"provider.key_store", "file", true, "a project may not choose"},
		{"agents.default", "yolo", true, "a project may not choose yolo"},
		{"ui.lagn", "en", true, `did you mean "ui.lang"`},
	} {
		err := r.CheckProject(tt.key, tt.value, tt.trusted)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s = %s, trusted %v: %v", tt.key, tt.value, tt.trusted, err)
		}
	}
}
