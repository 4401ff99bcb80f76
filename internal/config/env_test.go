package config_test

import (
	"slices"
	"strings"
	"testing"

	"coder/internal/config"
)

func TestVendors(t *testing.T) {
	const (
		openai    = "https://api.openai.com/v1"
		anthropic = "https://api.anthropic.com"
	)
	tests := map[string]struct {
		file            string
		env             env
		kind, base, key string
	}{
		"nothing":                        {kind: "openai"},
		"openai":                         {env: env{"OPENAI_API_KEY": "o"}, kind: "openai", base: openai, key: "o"},
		"openai's address alone":         {env: env{"OPENAI_BASE_URL": "http://h/v1"}, kind: "openai", base: "http://h/v1"},
		"openai's address and key":       {env: env{"OPENAI_BASE_URL": "http://h/v1", "OPENAI_API_KEY": "o"}, kind: "openai", base: "http://h/v1", key: "o"},
		"openrouter":                     {env: env{"OPENROUTER_API_KEY": "r"}, kind: "openai", base: "https://openrouter.ai/api/v1", key: "r"},
		"deepseek":                       {env: env{"DEEPSEEK_API_KEY": "d"}, kind: "openai", base: "https://api.deepseek.com/v1", key: "d"},
		"dashscope":                      {env: env{"DASHSCOPE_API_KEY": "q"}, kind: "openai", base: "https://dashscope.aliyuncs.com/compatible-mode/v1", key: "q"},
		"anthropic":                      {env: env{"ANTHROPIC_API_KEY": "a"}, kind: "anthropic", base: anthropic, key: "a"},
		"anthropic elsewhere":            {env: env{"ANTHROPIC_API_KEY": "a", "ANTHROPIC_BASE_URL": "http://h"}, kind: "anthropic", base: "http://h", key: "a"},
		"gemini":                         {env: env{"GEMINI_API_KEY": "g"}, kind: "gemini", base: "https://generativelanguage.googleapis.com/v1beta", key: "g"},
		"the first of several":           {env: env{"OPENROUTER_API_KEY": "r", "ANTHROPIC_API_KEY": "a"}, kind: "openai", base: "https://openrouter.ai/api/v1", key: "r"},
		"the kind decides among several": {env: env{"OPENAI_API_KEY": "o", "ANTHROPIC_API_KEY": "a", "CODER_PROVIDER": "anthropic"}, kind: "anthropic", base: anthropic, key: "a"},
		"responses is openai's":          {env: env{"DEEPSEEK_API_KEY": "d", "OPENAI_API_KEY": "o", "CODER_PROVIDER": "responses"}, kind: "responses", base: openai, key: "o"},
		"a kind nobody has a key of":     {env: env{"OPENAI_API_KEY": "o", "CODER_PROVIDER": "gemini"}, kind: "gemini", base: "https://generativelanguage.googleapis.com/v1beta"},
		"our own variables":              {env: env{"CODER_BASE_URL": "http://c", "CODER_API_KEY": "c", "OPENAI_API_KEY": "o"}, kind: "openai", base: "http://c", key: "c"},
		"the originals' variables":       {env: env{"AGENT_BASE_URL": "http://g", "AGENT_API_KEY": "g"}, kind: "openai", base: "http://g", key: "g"},
		"ours before the originals'":     {env: env{"AGENT_BASE_URL": "http://g", "CODER_BASE_URL": "http://c"}, kind: "openai", base: "http://c"},
		"a key goes to no stranger":      {env: env{"CODER_BASE_URL": "http://c", "OPENAI_API_KEY": "o"}, kind: "openai", base: "http://c"},
		"nor over a plain wire":          {env: env{"CODER_BASE_URL": "http://api.openai.com/v1", "OPENAI_API_KEY": "o"}, kind: "openai", base: "http://api.openai.com/v1"},
		"nor to a lookalike":             {file: `{"provider": {"base_url": "https://api.openai.com.evil.example/v1"}}`, env: env{"OPENAI_API_KEY": "o"}, kind: "openai", base: "https://api.openai.com.evil.example/v1"},
		"a known address finds its key":  {file: `{"provider": {"base_url": "https://API.anthropic.com/"}}`, env: env{"OPENAI_API_KEY": "o", "ANTHROPIC_API_KEY": "a"}, kind: "anthropic", base: "https://API.anthropic.com/", key: "a"},
		"an address in use finds its key": {file: `{"provider": {"base_url": "http://h/v2"}}`, env: env{"OPENAI_BASE_URL": "http://h/v1", "OPENAI_API_KEY": "o"},
			kind: "openai", base: "http://h/v2", key: "o"},
		"the kind of a file stays":        {file: `{"provider": {"base_url": "https://api.openai.com/v1", "kind": "responses"}}`, env: env{"OPENAI_API_KEY": "o"}, kind: "responses", base: openai, key: "o"},
		"the key of a file stays":         {file: `{"provider": {"base_url": "https://api.openai.com/v1", "api_key": "f"}}`, env: env{"OPENAI_API_KEY": "o"}, kind: "openai", base: openai, key: "f"},
		"a key alone means the usual":     {env: env{"CODER_API_KEY": "c"}, kind: "openai", base: openai, key: "c"},
		"a key of ours is not a vendor's": {env: env{"CODER_API_KEY": "c", "OPENROUTER_API_KEY": "r"}, kind: "openai", base: openai, key: "c"},
		"an address that is none":         {env: env{"OPENAI_BASE_URL": "nonsense"}, kind: "openai"},
		"an older name of an address":     {env: env{"OPENAI_API_BASE": "http://h/v1", "OPENAI_API_KEY": "o"}, kind: "openai", base: "http://h/v1", key: "o"},
		"the newer name first":            {env: env{"OPENAI_API_BASE": "http://h/v1", "OPENAI_BASE_URL": "http://i/v1", "OPENAI_API_KEY": "o"}, kind: "openai", base: "http://i/v1", key: "o"},
		"a key goes to the one in use":    {env: env{"OPENAI_API_BASE": "http://h/v1", "OPENAI_BASE_URL": "http://i/v1", "OPENAI_API_KEY": "o", "CODER_BASE_URL": "http://h/v1"}, kind: "openai", base: "http://h/v1"},
		"a server of this machine":        {env: env{"OLLAMA_HOST": "0.0.0.0:11500", "CODER_MODEL": "m"}, kind: "openai", base: "http://127.0.0.1:11500/v1"},
		"a vendor's key before it":        {env: env{"OLLAMA_HOST": "h", "GROQ_API_KEY": "q"}, kind: "openai", base: "https://api.groq.com/openai/v1", key: "q"},
		"a bearer's token":                {env: env{"ANTHROPIC_AUTH_TOKEN": "t", "ANTHROPIC_BASE_URL": "http://h"}, kind: "anthropic", base: "http://h", key: "t"},
		"the key before the token":        {env: env{"ANTHROPIC_AUTH_TOKEN": "t", "ANTHROPIC_API_KEY": "a"}, kind: "anthropic", base: anthropic, key: "a"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c, r := mustLoad(t, files{homeFile: tt.file}, tt.env)
			p := c.Provider
			if p.Kind != tt.kind || p.BaseURL != tt.base || p.APIKey != tt.key {
				t.Errorf("got %s %s %q, want %s %s %q", p.Kind, p.BaseURL, p.APIKey, tt.kind, tt.base, tt.key)
			}
			if p.BaseURL != "" && r.Origin("provider.base_url").String() == "default" {
				t.Error("nobody knows where the address came from")
			}
		})
	}
}

func TestModelsOfVendors(t *testing.T) {
	for name, tt := range map[string]struct {
		file          string
		env           env
		model, origin string
	}{
		"openai's":                     {env: env{"OPENAI_API_KEY": "o", "OPENAI_MODEL": "m"}, model: "m", origin: "env OPENAI_MODEL"},
		"blanks are nothing":           {env: env{"OPENAI_API_KEY": "o", "OPENAI_MODEL": " "}, model: "gpt-5.4", origin: "the default for provider.base_url"},
		"at an address of one's own":   {env: env{"OPENAI_BASE_URL": "http://h/v1", "OPENAI_MODEL": "m"}, model: "m", origin: "env OPENAI_MODEL"},
		"anthropic's":                  {env: env{"ANTHROPIC_API_KEY": "a", "ANTHROPIC_MODEL": "m"}, model: "m", origin: "env ANTHROPIC_MODEL"},
		"ollama's":                     {env: env{"OLLAMA_HOST": "h", "OLLAMA_MODEL": "m"}, model: "m", origin: "env OLLAMA_MODEL"},
		"by its preset":                {env: env{"CODER_PROVIDER": "ollama", "OLLAMA_MODEL": "m"}, model: "m", origin: "env OLLAMA_MODEL"},
		"with a key of ours":           {env: env{"CODER_API_KEY": "c", "OPENAI_MODEL": "m"}, model: "m", origin: "env OPENAI_MODEL"},
		"ours comes first":             {env: env{"OPENAI_API_KEY": "o", "OPENAI_MODEL": "m", "CODER_MODEL": "c"}, model: "c", origin: "env CODER_MODEL"},
		"a file comes first":           {file: `{"provider": {"model": "f"}}`, env: env{"OPENAI_API_KEY": "o", "OPENAI_MODEL": "m"}, model: "f", origin: "file"},
		"not for another vendor":       {env: env{"ANTHROPIC_API_KEY": "a", "OPENAI_MODEL": "m"}, model: "claude-sonnet-5-5", origin: "the default for provider.base_url"},
		"not for a stranger's address": {env: env{"CODER_BASE_URL": "http://c", "OPENAI_MODEL": "m"}, model: "", origin: "default"},
	} {
		t.Run(name, func(t *testing.T) {
			c, r := mustLoad(t, files{homeFile: tt.file}, tt.env)
			origin := r.Origin("provider.model").String()
			if strings.Contains(origin, homeFile) {
				origin = "file"
			}
			if c.Provider.Model != tt.model || origin != tt.origin {
				t.Errorf("%q from %s, want %q from %s", c.Provider.Model, origin, tt.model, tt.origin)
			}
		})
	}
}

func TestKeysAreKnown(t *testing.T) {
	for _, name := range []string{"CODER_API_KEY", "AGENT_API_KEY", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "GEMINI_API_KEY", "OPENROUTER_API_KEY", "DEEPSEEK_API_KEY", "DASHSCOPE_API_KEY"} {
		if !slices.Contains(config.KeyVariables(), name) {
			t.Errorf("%s is not kept from commands", name)
		}
	}
	_, r := mustLoad(t, files{homeFile: `{"provider": {"api_key": "${MINE}", "headers": {"Authorization": "Bearer header-secret", "Accept": "text/everything"}},
		"mcpServers": {"a": {"env": {"PATH": "/usr/local/bin", "GH_TOKEN": "gh-secret-1"}, "headers": {"X-Api-Key": "mcp-secret"}}}}`},
		env{"MINE": "my-secret-key"})
	got := r.Secrets([]string{"HOME=/home/someone", "OPENAI_API_KEY=sk-12345678", "DB_PASSWORD=postgres", "GEMINI_API_KEY=abc", "MINE=my-secret-key"})
	want := []string{"gh-secret-1", "header-secret", "mcp-secret", "my-secret-key", "sk-12345678"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if !slices.Contains(r.SecretVariables(), "MINE") {
		t.Errorf("variables %v", r.SecretVariables())
	}
}

func TestRowsSayWhereAndHideSecrets(t *testing.T) {
	_, r := mustLoad(t, files{homeFile: `{"provider": {"api_key": "sk-abcdefghijklmnop", "base_url": "https://me:pw@h/v1?key=abc",
		"headers": {"X": "short"}},
		"mcpServers": {"m": {"command": "c", "env": {"A": "hidden-value-1234"}, "url": "https://u:p@h/", "args": ["--x"]}}}`}, env{"CODER_MODEL": "<m>"})
	rows := map[string]string{}
	for _, row := range r.Rows() {
		if _, twice := rows[row.Key]; twice {
			t.Errorf("%s has two rows", row.Key)
		}
		rows[row.Key] = row.Value + " " + row.Origin.String()
	}
	for key, want := range map[string]string{
		"provider.api_key":        `"****mnop" ` + homeFile + ":1",
		"provider.base_url":       `"https://me:xxxxx@h/v1?****" ` + homeFile + ":1",
		"provider.headers.X":      `"****" ` + homeFile + ":2",
		"provider.model":          `"<m>" env CODER_MODEL`,
		"provider.models":         `[] default`,
		"runtime.max_steps":       `128 default`,
		"compaction.threshold":    `0.8 default`,
		`permission.bash."*"`:     `"ask" default`,
		"mcpServers.m":            `{"args":["--x"],"command":"c","env":{"A":"****1234"},"url":"https://u:xxxxx@h/"} ` + homeFile + ":3",
		"hooks":                   `{} default`,
		"permission.default":      `"ask" default`,
		"approval.interactive":    `true default`,
		"provider.send_reasoning": `true default`,
	} {
		if rows[key] != want {
			t.Errorf("%s is %s, want %s", key, rows[key], want)
		}
	}
	var all strings.Builder
	for k, v := range rows {
		all.WriteString(k + v)
	}
	for _, secret := range []string{"sk-abc", "hidden", ":pw@", ":p@", "key=abc"} {
		if strings.Contains(all.String(), secret) {
			t.Errorf("%s is shown", secret)
		}
	}
}
