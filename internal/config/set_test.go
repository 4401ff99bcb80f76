package config_test

import (
	"encoding/json"
	"strings"
	"testing"

	"coder/internal/config"

	"github.com/tailscale/hujson"
)

func TestSetChangesOneKeyAndNothingElse(t *testing.T) {
	tests := map[string]struct {
		before string
		key    string
		value  any
		after  string
	}{
		"an empty file":        {"", "provider.model", "m", "{\n  \"provider\": {\n    \"model\": \"m\"\n  }\n}\n"},
		"an empty object":      {"{}", "ui.color", "never", "{\n  \"ui\": {\n    \"color\": \"never\"\n  }\n}"},
		"a value in its place": {"// mine\n{ \"provider\": { /* a */ \"model\" : \"x\" /* b */ , }, }\n", "provider.model", "m<>", "// mine\n{ \"provider\": { /* a */ \"model\" : \"m<>\" /* b */ , }, }\n"},
		"a new key":            {"{\n\t\"provider\": {\n\t\t\"kind\": \"openai\" // wire\n\t}\n}\n", "provider.model", "m", "{\n\t\"provider\": {\n\t\t\"kind\": \"openai\", // wire\n\t\t\"model\": \"m\"\n\t}\n}\n"},
		"after a comma":        {"{\n  \"provider\": {\n    \"kind\": \"openai\", // wire\n  },\n}\n", "provider.model", "m", "{\n  \"provider\": {\n    \"kind\": \"openai\", // wire\n    \"model\": \"m\",\n  },\n}\n"},
		"a new block":          {"{\n    \"ui\": {},\n    // end\n}\n", "runtime.max_steps", 5, "{\n    \"ui\": {},\n    // end\n    \"runtime\": {\n        \"max_steps\": 5\n    },\n}\n"},
		"on one line":          {`{"ui": {"color": "auto"}}`, "ui.lang", "en", `{"ui": {"color": "auto", "lang": "en"}}`},
		"an empty block":       {"{\n  \"ui\": { /* none */ }\n}", "ui.lang", "en", "{\n  \"ui\": { /* none */\n    \"lang\": \"en\"\n  }\n}"},
		"a list":               {`{"provider": {"models": [1, /* x */]}}`, "provider.models", []string{"a", "b"}, `{"provider": {"models": ["a","b"]}}`},
		"a rule":               {`{"permission": {"bash": {"*": "ask"}}}`, `permission.bash."git *"`, "allow", `{"permission": {"bash": {"*": "ask", "git *": "allow"}}}`},
		"Windows":              {"{\r\n  \"ui\": {}\r\n}\r\n", "agents.default", "plan", "{\r\n  \"ui\": {},\r\n  \"agents\": {\r\n    \"default\": \"plan\"\r\n  }\r\n}\r\n"},
		"a mark at the start":  {"\ufeff{}", "ui.lang", "en", "\ufeff{\n  \"ui\": {\n    \"lang\": \"en\"\n  }\n}"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := config.SetValue([]byte(tt.before), tt.key, tt.value)
			if err != nil || string(got) != tt.after {
				t.Errorf("got %v\n%q\nwant\n%q", err, got, tt.after)
			}
		})
	}
}

func TestSetRefuses(t *testing.T) {
	for _, tt := range []struct {
		before, key string
		value       any
		want        string
	}{
		{"{}", "provider.modle", "m", `unknown key "provider.modle"; did you mean "provider.model"?`},
		{"{}", "runtime.max_steps", 0, "expected a whole number"},
		{"{}", "runtime.max_steps", "5", "expected a whole number"},
		{"{}", "ui.color", "pink", "expected auto, always or never"},
		{"{", "ui.color", "never", "not JSON"},
		{`{"ui": 5}`, "ui.color", "never", "expected an object, found 5"},
		{`[]`, "ui.color", "never", "expected an object, found a list"},
		{"{}", "provider", map[string]string{}, "unknown key"},
		{"{}", "ui.color", func() {}, "unsupported type"},
	} {
		if out, err := config.SetValue([]byte(tt.before), tt.key, tt.value); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("Set(%s, %s, %v) = %s, %v", tt.before, tt.key, tt.value, out, err)
		}
	}
}

// checkSet holds that after is before with the model changed.
func checkSet(t *testing.T, before string, after []byte) {
	t.Helper()
	v, err := hujson.Parse([]byte(strings.TrimPrefix(string(after), "\ufeff")))
	if err != nil {
		t.Fatalf("%q became %q: %v", before, after, err)
	}
	found := v.Find("/provider/model")
	if found == nil || found.Value.(hujson.Literal).String() != "new" {
		t.Fatalf("%q became %q without the model", before, after)
	}
	if !strings.Contains(before, "model") && strings.Count(string(after), "//") < strings.Count(before, "//") {
		t.Fatalf("%q became %q and lost a comment", before, after)
	}
}

func TestSchemaDescribesEverySetting(t *testing.T) {
	type node struct {
		Schema      string           `json:"$schema"`
		Type        string           `json:"type"`
		Description string           `json:"description"`
		Default     any              `json:"default"`
		Enum        []string         `json:"enum"`
		Minimum     *float64         `json:"minimum"`
		Properties  map[string]*node `json:"properties"`
		More        json.RawMessage  `json:"additionalProperties"`
	}
	var root node
	if err := json.Unmarshal(config.Schema(), &root); err != nil {
		t.Fatal(err)
	}
	if root.Schema != "https://json-schema.org/draft/2020-12/schema" || string(root.More) != "false" {
		t.Errorf("schema %s, others %s", root.Schema, root.More)
	}
	steps := root.Properties["runtime"].Properties["max_steps"]
	if steps.Type != "integer" || steps.Default != 128.0 || *steps.Minimum != 1 {
		t.Errorf("max_steps is %+v", steps)
	}
	if s := root.Properties["safety"].Properties["sandbox"]; strings.Join(s.Enum, " ") != "require auto off" || s.Default != "auto" {
		t.Errorf("sandbox is %+v", s)
	}
	if s := root.Properties["approval"].Properties["auto_approve_ask"]; s.Default != false {
		t.Errorf("auto_approve_ask is %+v", s)
	}
	if p := root.Properties["permission"]; string(p.More) == "false" || p.Properties["bash"].Default == nil {
		t.Errorf("permission is %+v", p)
	}
	_, r := mustLoad(t, nil, nil)
	for _, row := range r.Rows() {
		words := strings.Split(row.Key, ".")
		n := &root
		for _, w := range words[:min(2, len(words))] {
			if n = n.Properties[w]; n == nil {
				t.Errorf("%s is not in the schema", row.Key)
				break
			}
			if n.Description == "" {
				t.Errorf("%s has no description", row.Key)
			}
		}
	}
}
